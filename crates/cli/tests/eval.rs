//! `ucl eval` and `ucl methods` as a person sees them. Times are cut off; figures of the learned
//! decoder are not pinned, for CPUs with other vector units round its matrix products differently.

mod common;

use common::{Folder, Run};
use serde_json::Value;

/// 900 visits to 45 pages: page `k` comes more often the smaller `k` is.
fn visits() -> String {
    (0..900u32).map(|i| format!("/page/{}\n", i * i % 97 % (5 + i % 41))).collect()
}

/// The output without its last three columns, which are times.
#[track_caller]
fn timeless(run: Run) -> String {
    assert_eq!((run.code, run.err.as_str()), (0, ""), "{}", run.out);
    let header = run.out.lines().find(|line| line.starts_with(" method")).expect("a table");
    let end = header[..header.find("insert Mops").expect("a column of times")].chars().count();
    let cut = |line: &str| match line.starts_with(' ') {
        true => line.chars().take(end).collect::<String>().trim_end().to_owned() + "\n",
        false => line.to_owned() + "\n",
    };
    // Not every system tells what the process took.
    let told = run.out.lines().filter(|line| !line.starts_with("Peak memory of the process: "));
    told.map(cut).collect::<String>().trim_end().to_owned() + "\n"
}

fn objects(run: Run) -> Vec<Value> {
    assert_eq!((run.code, run.err.as_str()), (0, ""), "{}", run.out);
    run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn methods_side_by_side() {
    let folder = Folder::with("visits.txt", visits());
    let run = folder.run("eval visits.txt --memory 2KB,100 --method ucl-em,ucl-cm,cm,cs --baselines --seed 1");
    insta::assert_snapshot!(timeless(run), @r#"
    visits.txt: 900 items, 42 keys; an exact hash map takes 1.9KB

     method        memory   AAE    ARE   WMRD  entropy error  entropy, all keys  coverage  bound width  violations  uplink B/item
     ucl-em           2KB     0      0      0              0                  0   100.00%         12.5           0          0.544
     ucl-cm           2KB     0      0      0              0                  0   100.00%         5.79           0          0.814
     cm               2KB     0      0      0              0                  0         -         21.4           0              -
     cs               2KB  1.29  0.212  0.286           1.38               1.38         -          454           0              -
     exact-map      1.9KB     0      0      0              0                  0   100.00%            0           0              -
     send-keys    0 bytes     0      0      0              0                  0   100.00%            0           0           7.43
     ucl-em     100 bytes     -      -      -              -                  -         -            -           -              -
     ucl-cm     100 bytes     -      -      -              -                  -         -            -           -              -
     cm          96 bytes  83.2   16.7   2.00            313                313         -          105           0              -
     cs          96 bytes  24.7   2.94   1.42           99.0               43.6         -          418           0              -
     exact-map      1.9KB     0      0      0              0                  0   100.00%            0           0              -
     send-keys    0 bytes     0      0      0              0                  0   100.00%            0           0           7.43

    ucl-em at 100 bytes failed: a budget of 100 bytes is too small for keys of any length (16-byte digests): at least 320 bytes are needed.
    ucl-cm at 100 bytes failed: a budget of 100 bytes is too small for keys of any length (16-byte digests): at least 512 bytes are needed.
    "#);
}

#[test]
fn several_seeds_have_a_spread() {
    let folder = Folder::with("visits.txt", visits());
    let run = folder.run("eval --input visits.txt --memory 128 --method cm --seeds 3");
    insta::assert_snapshot!(timeless(run), @r#"
    visits.txt: 900 items, 42 keys; an exact hash map takes 1.9KB

     method     memory          AAE          ARE          WMRD  entropy error  entropy, all keys  coverage  bound width  violations  uplink B/item
     cm      128 bytes  53.2 ± 7.82  10.8 ± 2.25  1.87 ± 0.120     205 ± 28.1         205 ± 28.1         -         74.6           0              -

    Mean ± standard deviation of 3 seeds, 0 to 2.
    "#);
}

#[test]
fn json_has_every_field() {
    let folder = Folder::new();
    let command = "eval zipf:1.1:3000:500 --memory 4KB --method ucl-learned,cm --epochs 2 --window 3 --seeds 2 --json";
    let rows = objects(folder.run(command));
    let names: Vec<_> =
        rows.iter().map(|row| (row["method"].as_str().unwrap(), row["seed"].as_u64().unwrap())).collect();
    assert_eq!(names, [("ucl-learned", 0), ("ucl-learned", 1), ("cm", 0), ("cm", 1)]);
    let fields = "method input items keys memory_budget memory_used memory_parts aae are wmrd entropy_error entropy_error_all_keys \
                  coverage bound_violations bound_width insert_mops query_mops train_seconds train_epochs decode_ms uplink_bytes \
                  uplink_bytes_per_item control_bytes exact_map_bytes snapshots seed base heavy";
    for row in &rows {
        for field in fields.split_whitespace() {
            assert!(row.get(field).is_some(), "{field} is missing in {row}");
        }
        assert_eq!(row["bound_violations"], 0);
        assert_eq!(row["items"], 3000);
    }
    let learned = &rows[0];
    for field in fields.split_whitespace() {
        assert!(!learned[field].is_null(), "{field} is null in {learned}");
    }
    assert_eq!(
        (&learned["train_epochs"], &learned["snapshots"], &learned["interval"]),
        (&2.into(), &3.into(), &1000.into())
    );
    assert_eq!(rows[2]["uplink_bytes"], Value::Null, "a plain sketch sends nothing");
    if cfg!(target_os = "linux") {
        let peak = |row: &Value| row["peak_resident_bytes"].as_u64().unwrap();
        assert!(peak(&rows[0]) > 0 && rows.is_sorted_by_key(peak), "what was once taken was");
        let text = folder.run("eval zipf:1.1:3000:500 --memory 4KB --method cm").out;
        assert!(text.contains("\nPeak memory of the process: "), "{text}");
    }
}

#[test]
fn a_shape_by_hand() {
    let folder = Folder::new();
    let command = "eval zipf:1.1:3000:500 --json --method ucl-em,cm --interval none --report-rule new --counter-bits 8 \
                   --shape slots=50,width=64,depth=3,bloom-bits=4096,bloom-hashes=5,vote-ratio=2";
    let rows = objects(folder.run(command));
    let shape = serde_json::json!({
        "slots": 50, "width": 64, "rows": 3, "bloom_bits": 4096, "bloom_hashes": 5, "vote_ratio": 2, "counter_bits": 8,
    });
    assert_eq!(rows[0]["shape"], shape);
    assert_eq!((&rows[0]["rule"], &rows[0]["interval"]), (&"new".into(), &Value::Null));
    assert_eq!(rows[0]["memory_used"], rows[0]["memory_budget"]);
    assert_eq!(rows[1]["memory_budget"], rows[0]["memory_budget"], "the same bytes for all");
    let paper = objects(folder.run("eval zipf:1.1:1000:100 --json --method ucl-cm --shape slots=3000"));
    assert_eq!((&paper[0]["rule"], &paper[0]["counter_bits"]), (&"paper".into(), &32.into()));
}

#[test]
fn other_base_sketches_and_heavy_parts() {
    let folder = Folder::new();
    for base in ["count-min", "count-sketch", "flowradar"] {
        for heavy in ["voting", "augmented", "elastic"] {
            let command = "eval zipf:1.1:3000:500 --memory 4KB --method ucl-learned --epochs 2 --window 3 --json";
            let rows = objects(folder.run(&format!("{command} --base {base} --heavy {heavy}")));
            assert_eq!((&rows[0]["base"], &rows[0]["heavy"]), (&base.into(), &heavy.into()));
            assert_eq!((&rows[0]["error"], &rows[0]["bound_violations"]), (&Value::Null, &0.into()), "{}", rows[0]);
            assert!(rows[0]["memory_used"].as_u64() <= Some(4096));
        }
    }
    // What cannot be decoded is named, beside what can; if there is nothing else, the command
    // fails.
    let run = folder.run("eval zipf:1.1:3000:500 --memory 4KB --method ucl-lsmr,ucl-em --base count-sketch");
    let note = run.out.lines().last().unwrap();
    let why = "the decoder 'em' cannot decode this sketch: it needs columns without negative coefficients";
    assert_eq!((run.code, note), (0, format!("ucl-em at 4KB failed: {why}.").as_str()));
    let run = folder.run("eval zipf:1.1:3000:500 --memory 4KB --method ucl-em --base count-sketch --json");
    assert_eq!((run.code, run.err.as_str()), (1, "ucl: no method could be measured\n"));
    let row: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(row["error"], why);
}

#[test]
fn the_papers_shapes() {
    let folder = Folder::new();
    let command = "eval zipf:1.2:2000:300 --json --shape paper --memory 16KB,32KB --method ucl-cm,cm,lcm";
    let rows = objects(folder.run(command));
    let sizes = |row: &Value| ["slots", "rows", "width"].map(|size| row["shape"][size].as_u64());
    assert_eq!(sizes(&rows[0]), [Some(500), Some(4), Some(512)]);
    assert_eq!(sizes(&rows[1]), [None, Some(4), Some(1024)]);
    assert_eq!(sizes(&rows[2]), [Some(512), Some(4), Some(512)]);
    assert_eq!(sizes(&rows[3]), [Some(1500), Some(4), Some(512)]);
    let odd = folder.run("eval zipf:1.2:2000:300 --json --shape paper --memory 20KB --method cm");
    let row: Value = serde_json::from_str(&odd.out).unwrap();
    let why = "the paper gives shapes for 16KB to 128KB in steps of 16KB and 4-byte keys, not for 20480 bytes and 4-byte keys";
    assert_eq!((odd.code, &row["error"]), (1, &why.into()));
}

#[test]
fn weights_and_keys_of_any_length() {
    let folder = Folder::with("sales.csv", "what,amount\ntea,5\nmilk,2\ntea,1\nrum,100\n");
    let rows =
        objects(folder.run("eval sales.csv --format csv:what --weight amount --method ucl-em,cm,exact-map --json"));
    for row in rows {
        assert_eq!((&row["keys"], &row["aae"], &row["input"]), (&3.into(), &0.0.into(), &"sales.csv".into()), "{row}");
    }
}

#[test]
fn plots() {
    let folder = Folder::new();
    let run = folder.run("eval zipf:1.1:2000:500 --memory 1KB,2KB --method cm,cs --plot errors.svg");
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    assert!(String::from_utf8(folder.read("errors.svg")).unwrap().starts_with("<svg"));
}

/// The network's own answers stand below those within the bounds, and in JSON beside them.
#[test]
fn a_network_has_a_second_line_without_bounds() {
    let folder = Folder::new();
    let command =
        "eval zipf:1.1:6000:900 --memory 4KB --method ucl-learned,ucl-em --epochs 3 --window 6 --interval 1000";
    let text = folder.run(command).fine();
    let lines: Vec<&str> = text.lines().filter(|line| line.trim_start().starts_with("unbounded")).collect();
    assert_eq!(lines.len(), 1, "EM has no second line: {text}");
    assert!(text.contains("the network's own answers, before they are put within the guaranteed bounds"), "{text}");
    let rows = objects(folder.run(&format!("{command} --json")));
    let (bounded, unbounded) = (rows[0]["aae"].as_f64().unwrap(), rows[0]["unbounded"]["aae"].as_f64().unwrap());
    assert!(bounded < unbounded, "three epochs are no training: {bounded} {unbounded}");
    assert_eq!((rows[0]["restarts"].clone(), rows[1].get("unbounded")), (0.into(), None));
}

/// Along the stream the network is trained as often as the window slides by a quarter.
#[test]
fn training_along_the_stream() {
    let folder = Folder::new();
    let epochs = |training: &str| {
        let command =
            "eval zipf:1.1:16000:900 --memory 4KB --method ucl-learned --epochs 8 --window 8 --interval 1000 --json";
        let rows = objects(folder.run(&format!("{command} {training}")));
        assert_eq!(rows[0]["bound_violations"], 0);
        rows[0]["train_epochs"].as_u64().unwrap()
    };
    assert_eq!(epochs(""), 8);
    assert_eq!(epochs("--training final"), 8);
    // Sixteen cuts, a training at every second one, each of a quarter of the epochs.
    assert_eq!(epochs("--training online"), 8 * 2);
    let refused = folder.run("eval zipf:1.1:100 --training sometimes").failed(2);
    assert!(refused.contains("there are online (along the stream) and final (once, at its end)"), "{refused}");
}

#[test]
fn no_snapshot_to_train_on() {
    let run = Folder::new().run("eval zipf:1.1:400:50 --method ucl-learned --memory 8KB");
    let note = run.out.lines().last().unwrap();
    assert_eq!(note, "ucl-learned at 8KB was decoded by em: there was no snapshot to train on.");
}

#[test]
fn what_is_wrong_with_the_command_line() {
    let folder = Folder::new();
    let failed = |args: &str| folder.run(&format!("eval zipf:1.1:100 {args}")).failed(2);
    insta::assert_snapshot!(failed("--method cm,nope"), @r#"
    ucl: invalid value 'nope' for '--method <NAME>': there is no method 'nope'; there are ucl-learned, ucl-refined, ucl-lsqr, ucl-lsmr, ucl-omp, ucl-map, ucl-em, ucl-delta, ucl-cm, ucl-exact, ucl-budget, flowcache, sample, cm, cu, cs, asketch, elastic, univmon, nitro, lcm, lcs, flowradar, pr, seq, hist, lss, nitro-line, cs-alike, lcs-alike, lcm-trained, lcs-trained, lcm-rnn, lcs-rnn, elastic-sum, exact-map, send-keys, and 'all'

    For more information, try '--help'.
    "#);
    insta::assert_snapshot!(failed("--shape slots=10,height=4"), @r#"
    ucl: invalid value 'slots=10,height=4' for '--shape <SHAPE>': unknown size 'height'; a shape has slots, width, depth, bloom-bits, bloom-hashes, vote-ratio and counter-bits

    For more information, try '--help'.
    "#);
    insta::assert_snapshot!(failed("--shape width=0"), @r#"
    ucl: invalid value 'width=0' for '--shape <SHAPE>': width is 0, but must be from 1 to 134217728

    For more information, try '--help'.
    "#);
    insta::assert_snapshot!(failed("--interval 0"), @r#"
    ucl: invalid value '0' for '--interval <ITEMS>': give a number of items, at least 1, or 'none'

    For more information, try '--help'.
    "#);
    insta::assert_snapshot!(failed("--memory much"), @r#"
    ucl: invalid value 'much' for '--memory <SIZE>': 'much' is not a size: write a number with an optional unit, as in 65536, 64KB, 1.5MB

    For more information, try '--help'.
    "#);
    insta::assert_snapshot!(failed("--plot errors.pdf"), @"ucl: errors.pdf: a plot is an .svg file");
    insta::assert_snapshot!(failed("--shape slots=10 --memory 64KB"), @"ucl: a --shape with sizes determines the memory: remove --memory");
}

#[test]
fn what_is_wrong_with_the_input() {
    let folder = Folder::with("empty.txt", "");
    insta::assert_snapshot!(folder.run("eval empty.txt --method cm").failed(1), @"ucl: empty.txt: the stream has no items");
    insta::assert_snapshot!(folder.run("eval missing.txt --method cm").failed(1), @"ucl: cannot open missing.txt: No such file or directory (os error 2)");
    folder.write("sales.csv", "what,amount\ntea,5\nmilk,many\n");
    let command = "eval sales.csv --format csv:what --weight amount --method exact-map --json";
    // What was read before the bad record is measured all the same.
    let stopped = folder.run(command);
    let row: Value = serde_json::from_str(&stopped.out).unwrap();
    assert_eq!((stopped.code, &row["items"], &row["aae"]), (1, &1.into(), &0.0.into()));
    insta::assert_snapshot!(stopped.err, @"ucl: sales.csv, line 3: weight `many` is not a number from 0 to 9223372036854775807 (--on-error skip skips it); the figures cover the 1 item before it");
    folder.write("bad.csv", "what,amount\nmilk,many\n");
    insta::assert_snapshot!(folder.run("eval bad.csv --format csv:what --weight amount --method exact-map --json").failed(1), @"ucl: bad.csv, line 2: weight `many` is not a number from 0 to 9223372036854775807 (--on-error skip skips it)");
    let skipped = folder.run(&format!("{command} --on-error skip"));
    assert_eq!(skipped.code, 0);
    insta::assert_snapshot!(skipped.err, @"ucl: skipped 1 bad record; the first: sales.csv, line 3: weight `many` is not a number from 0 to 9223372036854775807");
}

#[test]
fn a_truncated_input_counts_as_far_as_it_goes() {
    use std::io::Write;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    (0..50_000u32).for_each(|i| writeln!(gzip, "{}", i.wrapping_mul(2_654_435_761) >> 12).unwrap());
    let packed = gzip.finish().unwrap();
    let folder = Folder::with("lines.gz", &packed[..packed.len() / 2]);
    let run = folder.run("eval lines.gz --method exact-map --json");
    assert_eq!(run.code, 1);
    let row: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(row["aae"], 0.0);
    assert!(run.err.contains("truncated") && run.err.contains("items before"), "{}", run.err);
}

#[test]
fn no_method_fits() {
    let run = Folder::new().run("eval zipf:1.1:100 --memory 10 --method cm --json");
    assert_eq!((run.code, run.err.as_str()), (1, "ucl: no method could be measured\n"));
    let row: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(row["error"], "a budget of 10 bytes is too small: at least 16 are needed");
}

#[test]
fn the_list_of_methods() {
    let folder = Folder::new();
    insta::assert_snapshot!(folder.run("methods").fine(), @r#"
    ucl-learned  UCL-sketch with the self-trained network, at the end or along the stream: --training (UCL-sketch, section "Training Strategy")
    ucl-refined  UCL-sketch decoded by EM that starts from the network's output (this project)
    ucl-lsqr     UCL-sketch decoded by least squares (LSQR) (Paige and Saunders, ACM TOMS 1982)
    ucl-lsmr     UCL-sketch decoded by least squares (LSMR), as PR-sketch does (Fong and Saunders, SIAM J. Sci. Comput. 2011; Sheng et al., PR-Sketch, VLDB 2021)
    ucl-omp      UCL-sketch decoded by orthogonal matching pursuit, as SeqSketch does (Pati et al., Asilomar 1993; Huang et al., SeqSketch, 2021)
    ucl-map      UCL-sketch decoded by the closed form under a Gaussian prior (UCL-sketch, Theorem 4)
    ucl-em       UCL-sketch decoded by expectation maximisation, from one snapshot (Shepp and Vardi, IEEE TMI 1982; Kumar et al., SIGMETRICS 2004)
    ucl-delta    UCL-sketch with every epoch decoded on its own by EM, and added up (this project)
    ucl-cm       UCL-sketch answered by the smallest counter: no equations solved (Cormode and Muthukrishnan, J. Algorithms 2005)
    ucl-exact    a mirrored table whose evictions go up the link: every count is exact (this project)
    ucl-budget   the same while --uplink allows; what does not fit is absorbed by a sketch (this project)
    flowcache    a flow cache of whole keys, least recently used out, whose evictions are sent: exact (what NetFlow and IPFIX exporters do (RFC 7011))
    sample       a uniform sample of the items, sent as whole keys, as many as --uplink allows (what sFlow agents do (RFC 3176))
    cm           Count-Min: 4 rows of 32-bit counters, the smallest one answers (Cormode and Muthukrishnan, J. Algorithms 2005)
    cu           Count-Min with conservative update: only the smallest counters are raised (Estan and Varghese, SIGCOMM 2002)
    cs           Count Sketch: 4 rows of signed 32-bit counters, the median answers (Charikar, Chen and Farach-Colton, ICALP 2002)
    asketch      Augmented Sketch: 32 hot keys in a filter that exchanges with a Count-Min (Roy, Khan and Alonso, SIGMOD 2016)
    elastic      Elastic Sketch: buckets with votes in front of 8-bit counters that saturate (Yang et al., SIGCOMM 2018)
    univmon      UnivMon: a Count Sketch for each of two levels of sampled keys (Liu et al., SIGCOMM 2016)
    nitro        NitroSketch: a Count Sketch with sampled updates, always correct (Liu et al., SIGCOMM 2019)
    lcm          learned Count-Min with an ideal oracle that is told the heavy keys: ground truth (Hsu et al., ICLR 2019)
    lcs          learned Count Sketch with an ideal oracle that is told the heavy keys: ground truth (Hsu et al., ICLR 2019)
    flowradar    FlowRadar: cells that name their keys, peeled; Count-Min for what does not peel (Li et al., NSDI 2016)
    pr           PR-sketch: a Count-Min whose equations are solved by least squares (LSMR) (Sheng et al., PVLDB 2021)
    seq          SeqSketch: a table of large keys, a fractional sensing matrix, and OMP (Huang et al., NSDI 2021)
    hist         HistSketch, its frequency part: a table of hot keys, shared counters, and OMP (He et al., ICDE 2023)
    lss          locality-sensitive sketch, in part: keys of like size share a bucket, and its mean answers (Fu et al., INFOCOM 2020)
    nitro-line   NitroSketch that updates one counter in 128, for always line rate (Liu et al., SIGCOMM 2019)
    cs-alike     Count Sketch with an error: half of the rows sign all keys alike (the public code of the UCL-sketch paper)
    lcs-alike    learned Count Sketch with the same error: half of the rows sign all keys alike (the public code of the UCL-sketch paper)
    lcm-trained  learned Count-Min with an oracle trained on the first tenth of the stream (Hsu et al., ICLR 2019; Jiang et al., ICLR 2020)
    lcs-trained  learned Count Sketch with an oracle trained on the first tenth of the stream (Hsu et al., ICLR 2019; Jiang et al., ICLR 2020)
    lcm-rnn      lcm with a two-layer recurrent network run before each item, for its cost in time (UCL-sketch, section "Processing Speed")
    lcs-rnn      lcs with a two-layer recurrent network run before each item, for its cost in time (UCL-sketch, section "Processing Speed")
    elastic-sum  Elastic Sketch fed the total of every key in ascending order, instead of the stream (the public code of the UCL-sketch paper)
    exact-map    an exact hash map where the stream is seen, whatever it takes: the right tool where it fits (a yardstick)
    send-keys    every key sent as it is, and counted elsewhere: no memory here, all of it uplink (a yardstick)
    "#);
    let rows = objects(folder.run("methods --json"));
    assert_eq!(rows.len(), folder.run("methods").out.lines().count());
    assert_eq!((&rows[0]["name"], &rows[0]["baseline"]), (&"ucl-learned".into(), &false.into()));
    let variants = rows.iter().filter(|row| row["variant"] == true).count();
    assert_eq!(variants, 9, "selected by name only");
}

/// A sample keeps to the uplink that it is given, and short codes send less than whole keys.
#[test]
fn the_uplink_can_be_chosen() {
    let rows = |args: &str| {
        let run = Folder::new().run(&format!("eval caida-like:20000 --memory 8KB --seed 1 --json {args}"));
        objects(run)
    };
    let sent = |args: &str| rows(args)[0]["uplink_bytes_per_item"].as_f64().unwrap();
    let (little, more) = (sent("--method sample --uplink 0.05"), sent("--method sample --uplink 0.5"));
    assert!((0.049..0.053).contains(&little) && (0.49..0.503).contains(&more), "{little} {more}");
    let short = rows("--method ucl-exact --code-bits 36");
    assert_eq!(short[0]["bound_violations"], 0);
    assert!(sent("--method ucl-exact --code-bits 36") < sent("--method ucl-exact --code-bits 64"));
}
