use super::*;

/// Nobody listens there: the port was given back.
fn nobody() -> Client {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    Client::new(&format!("http://127.0.0.1:{port}"), "t").unwrap()
}

fn settings(state: &std::path::Path) -> EmbeddedSettings {
    EmbeddedSettings {
        client: nobody(),
        tenant: "shop".parse().unwrap(),
        stream: "web-1".parse().unwrap(),
        format: "lines".into(),
        memory: Bytes(16 << 10),
        mode: Mode::Budget,
        interval: None,
        cut_every: Duration::from_secs(10),
        state: state.to_owned(),
        spool_bytes: 64 << 20,
        queue_bytes: 1 << 20,
    }
}

const NOT_LONG: Duration = Duration::from_millis(50);

/// Looks until there is something to see. Nothing takes a minute unless it hangs.
fn eventually<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(Instant::now() < until, "nothing to see after a minute");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn what_is_not_delivered_waits_in_the_folder() {
    let place = tempfile::tempdir().unwrap();
    let agent = Embedded::start(settings(place.path())).unwrap();
    for n in 0..1_000 {
        assert!(agent.add(format!("key {}", n % 10).as_bytes(), 1).unwrap());
    }
    assert!(!agent.flush(NOT_LONG).unwrap(), "nobody has it");
    let notes = eventually(|| Some(agent.notes()).filter(|notes| !notes.is_empty()));
    assert!(notes[0].starts_with("web-1: warning: cannot reach http://127.0.0.1:"), "{notes:?}");
    assert!(!agent.close(NOT_LONG).unwrap());
    assert!(matches!(agent.add(b"late", 1), Err(EmbeddedError::Closed)));
    assert!(!agent.close(NOT_LONG).unwrap(), "closing again changes nothing");
    assert_eq!(agent.notes(), Vec::<String>::new());

    let again = Embedded::start(settings(place.path())).unwrap();
    let status = again.status().unwrap();
    assert_eq!((status.agent.items, status.agent.open_items, status.agent.waiting), (1_000, 0, 1));
    assert_eq!((status.dropped, status.stopped), (0, None));
    again.add(b"one more", 2).unwrap();
    again.close(Duration::ZERO).unwrap();
    assert_eq!(again.status().unwrap().agent.items, 1_001);
}

#[test]
fn a_folder_is_used_once() {
    let place = tempfile::tempdir().unwrap();
    let _agent = Embedded::start(settings(place.path())).unwrap();
    let error = Embedded::start(settings(place.path())).unwrap_err().to_string();
    assert!(error.contains("is in use"), "{error}");
}

#[test]
fn a_full_queue_leaves_items_out_and_says_so() {
    let place = tempfile::tempdir().unwrap();
    let agent = Embedded::start(EmbeddedSettings { queue_bytes: 40, ..settings(place.path()) }).unwrap();
    let items = [(&b"a"[..], 1), (b"b", 2), (b"c", 1)];
    let mut batch = ucl_streams::BatchBuf::new();
    items.iter().for_each(|(key, weight)| batch.push(key, *weight));
    assert_eq!(agent.add_all(&batch.as_batch()).unwrap(), 2);
    agent.close(NOT_LONG).unwrap();
    let status = agent.status().unwrap();
    assert_eq!((status.agent.items, status.dropped, status.queued), (2, 1, 0));
    let notes = agent.notes();
    assert!(notes.iter().any(|note| note == "web-1: warning: the queue is full: 1 item left out"), "{notes:?}");
}

#[test]
fn settings_that_cannot_be() {
    let place = tempfile::tempdir().unwrap();
    let exact = EmbeddedSettings { mode: Mode::Exact, ..settings(place.path()) };
    assert!(matches!(Embedded::start(exact), Err(EmbeddedError::ExactMode)));
    let small = EmbeddedSettings { memory: Bytes(10), ..settings(place.path()) };
    assert!(matches!(Embedded::start(small), Err(EmbeddedError::Build(_))));
    let hasty = EmbeddedSettings { cut_every: Duration::ZERO, ..settings(place.path()) };
    assert!(matches!(Embedded::start(hasty), Err(EmbeddedError::Agent(AgentError::EmptyEpochs))));
}
