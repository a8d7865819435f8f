//! Colours and marks of the lines of a figure.

/// Colours that can be told apart, also by most who do not see all of them.
const COLOURS: [&str; 10] =
    ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#785E46", "#5A5A5A", "#783CAA", "#96AA28"];

/// For the systems that others published, where ours stand beside them.
const RIVAL: &str = "#9A9A9A";

/// Colours and marks of the lines of one figure, by name.
pub(super) struct Styles<'a> {
    names: Vec<&'a str>,
}

/// Look of a line or bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Style {
    pub(super) colour: &'static str,
    /// Which of the marks.
    pub(super) mark: usize,
    /// True if it is one of many that the figure does not speak of.
    pub(super) rival: bool,
}

impl<'a> Styles<'a> {
    pub(super) fn of(names: Vec<&'a str>) -> Self {
        Self { names }
    }

    pub(super) fn names(&self) -> &[&'a str] {
        &self.names
    }

    /// Our family has the colours where it stands beside others, and these are grey: every line has
    /// its name at its end. Where there is one kind only, each has a colour.
    pub(super) fn style(&self, name: &str) -> Style {
        let ours = |name: &str| name.starts_with("ucl-");
        let mixed = self.names.iter().any(|name| ours(name)) && !self.names.iter().all(|name| ours(name));
        let number = self.names.iter().position(|other| *other == name).unwrap_or(0);
        if mixed && !ours(name) {
            return Style { colour: RIVAL, mark: number, rival: true };
        }
        let coloured = self.names.iter().take(number).filter(|name| !mixed || ours(name)).count();
        // Neighbours in the list differ in both.
        Style { colour: COLOURS[coloured % COLOURS.len()], mark: coloured + coloured / COLOURS.len(), rival: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_family_is_coloured_and_rivals_are_grey() {
        let styles = Styles::of(vec!["cm", "ucl-em", "cs", "ucl-delta"]);
        let colours = ["cm", "ucl-em", "cs", "ucl-delta"].map(|name| styles.style(name).colour);
        assert_eq!(colours, [RIVAL, COLOURS[0], RIVAL, COLOURS[1]]);
    }

    #[test]
    fn without_rivals_every_line_has_its_colour() {
        for names in [["cm", "cs", "lcm"], ["ucl-em", "ucl-delta", "ucl-map"], ["without SA", "without EQ", "full"]] {
            let styles = Styles::of(names.to_vec());
            let mut colours = names.map(|name| styles.style(name).colour).to_vec();
            colours.dedup();
            assert_eq!(colours, COLOURS[..3]);
        }
    }

    #[test]
    fn thirty_lines_differ_in_colour_or_mark() {
        let names: Vec<String> = (0..30).map(|n| format!("line {n}")).collect();
        let styles = Styles::of(names.iter().map(String::as_str).collect());
        let mut seen: Vec<(&str, usize)> =
            names.iter().map(|name| styles.style(name)).map(|style| (style.colour, style.mark % 3)).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 30);
    }
}
