//! Several collectors with different streams, asked as one.

mod common;

use common::{Running, Sender, config};
use ucl_link::{About, Client, ClientError, Fleet, Whole};

fn client(running: &Running) -> Client {
    Client::new(&format!("http://{}", running.address), &running.token).unwrap()
}

fn about() -> About {
    About::all("default".parse().unwrap())
}

#[test]
fn the_largest_sum_is_found_though_it_is_small_everywhere() {
    let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let services = folders.each_ref().map(|folder| Running::start(config(folder.path()), None));
    for (number, service) in services.iter().enumerate() {
        let own: Vec<(String, u64)> = (0..9).map(|key| (format!("own-{number}-{key}"), 50 + key)).collect();
        let mut keys: Vec<(&str, u64)> = own.iter().map(|(key, count)| (key.as_str(), *count)).collect();
        keys.extend([("shared", 40), ("nearly", 10)]);
        Sender::new(&format!("web-{number}"), 0).send(service, &keys);
    }
    let fleet = Fleet::new(services.iter().map(client).collect()).unwrap();
    let Whole { answer, silent, missing } = fleet.top(&about(), 3).unwrap();
    assert!(silent.is_empty() && missing.is_empty());
    let top: Vec<(&str, u64)> = answer.keys.iter().map(|row| (row.key.shown.as_str(), row.count.estimate)).collect();
    assert_eq!(top, [("shared", 120), ("own-0-8", 58), ("own-1-8", 58)]);
    assert!(
        answer.keys.iter().all(|row| row.count.lower <= row.count.estimate && row.count.estimate <= row.count.upper)
    );
    let items: u64 = 3 * ((0..9).map(|key| 50 + key).sum::<u64>() + 50);
    assert_eq!(answer.facts.items, items);
    // All of them, and more than there are.
    let all = fleet.top(&about(), 100).unwrap().answer.keys;
    assert_eq!(all.len(), 29);
    assert_eq!(all.iter().map(|row| row.count.estimate).sum::<u64>(), items);

    let asked = ["nearly", "own-1-0", "nothing"].map(String::from);
    let rows = fleet.estimate(&about(), &asked).unwrap().answer.keys;
    let counts: Vec<(&str, u64)> = rows.iter().map(|row| (row.key.shown.as_str(), row.count.estimate)).collect();
    assert_eq!(counts, [("nearly", 30), ("own-1-0", 50), ("nothing", 0)]);
    let streams = fleet.streams(&about()).unwrap().answer;
    assert_eq!(streams.iter().map(|row| row.stream.as_str()).collect::<Vec<_>>(), ["web-0", "web-1", "web-2"]);
}

#[test]
fn a_collector_that_is_down_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(config(folder.path()), None);
    Sender::new("web-1", 0).send(&running, &[("tea", 5)]);
    // A port that nobody listens on: it was given back.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let down = format!("http://127.0.0.1:{port}");
    let gone = Client::new(&down, "t").unwrap();
    let fleet = Fleet::new(vec![gone.clone(), client(&running)]).unwrap();
    let Whole { answer, silent, .. } = fleet.estimate(&about(), &["tea".into()]).unwrap();
    assert_eq!(answer.keys[0].count.estimate, 5);
    assert!(matches!(&silent[..], [ClientError::Unreachable { address, .. }] if *address == down), "{silent:?}");
    assert!(Fleet::new(vec![gone]).unwrap().streams(&about()).is_err(), "nobody is left");
    assert!(Fleet::new(Vec::new()).is_err());
}
