//! The example of sixty lines runs, and has no more than sixty.

#[path = "../examples/sixty_lines.rs"]
mod sixty_lines;

#[test]
fn sixty_lines_count_merge_and_equal_the_exact_counts() {
    sixty_lines::main().unwrap();
    let lines = include_str!("../examples/sixty_lines.rs").lines().count();
    assert!(lines <= 60, "{lines} lines");
}
