//! The README's program, on a file made here.

use ucl_sketch::UclSketch;

#[test]
fn the_readme_program_counts_words() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::temp_dir().join(format!("ucl-readme-{}.txt", std::process::id()));
    let words: Vec<String> = (0..5_000u32).map(|i| format!("word{}", i % (1 + i % 97))).collect();
    std::fs::write(&path, words.join(" "))?;

    let mut sketch = UclSketch::builder().memory("64KB").seed(7).build()?;
    for word in std::fs::read_to_string(&path)?.split_whitespace() {
        sketch.insert(word.as_bytes())?;
    }
    let view = sketch.view()?; // one consistent moment; asking changes nothing
    let mut printed = Vec::new();
    for (id, answer) in view.top(10) {
        let word = String::from_utf8_lossy(view.registry().key(id));
        printed.push((word.into_owned(), answer.estimate));
    }

    std::fs::remove_file(&path)?;
    assert_eq!(printed.len(), 10);
    for (word, estimate) in printed {
        assert_eq!(estimate, words.iter().filter(|&w| *w == word).count() as u64, "{word}");
    }
    Ok(())
}
