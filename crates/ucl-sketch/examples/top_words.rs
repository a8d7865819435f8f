//! The most frequent words of a text:
//! `cargo run --release -p ucl-sketch --example top_words < book.txt`

use std::io::{self, BufRead};

use ucl_sketch::UclSketch;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut sketch = UclSketch::builder().memory("64KB").build()?;
    for line in io::stdin().lock().lines() {
        let line = line?.to_lowercase();
        for word in line.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()) {
            sketch.insert(word)?;
        }
    }
    let view = sketch.view();
    println!("{} words, {} of them different", view.items(), view.known_keys());
    for hit in view.top(10) {
        println!("{hit}");
    }
    Ok(())
}
