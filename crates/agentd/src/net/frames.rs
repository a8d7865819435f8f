//! From the bytes of a connection to lines.

/// The longest line or frame; longer ones end the connection.
const LONGEST: usize = 1 << 20;

/// The connection sends what cannot be lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// Splits the bytes of a connection into messages. Its first byte decides: only a frame begins with
/// a digit and goes on with a length, a blank and a `<`.
#[derive(Debug, Default)]
pub struct Frames {
    counted: Option<bool>,
    waiting: Vec<u8>,
}

impl Frames {
    /// Adds the bytes of a connection, and appends its whole lines to `out`.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
        self.waiting.extend(bytes);
        if self.counted.is_none() {
            self.counted = is_counted(&self.waiting);
        }
        match self.counted {
            None => Ok(()),
            Some(false) => {
                let whole = self.waiting.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
                out.extend(self.waiting.drain(..whole));
                if self.waiting.len() > LONGEST { Err(Malformed) } else { Ok(()) }
            }
            Some(true) => self.frames(out),
        }
    }

    /// The connection ended: a last line without its end counts, half a frame does not.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), Malformed> {
        if self.counted == Some(true) {
            return if self.waiting.is_empty() { Ok(()) } else { Err(Malformed) };
        }
        out.append(&mut self.waiting);
        if out.last().is_some_and(|last| *last != b'\n') {
            out.push(b'\n');
        }
        Ok(())
    }

    fn frames(&mut self, out: &mut Vec<u8>) -> Result<(), Malformed> {
        let mut rest = &self.waiting[..];
        let taken = loop {
            match split_frame(rest) {
                Ok(Some((frame, after))) => {
                    // Within a message a newline is white space.
                    let frame = frame.strip_suffix(b"\n").unwrap_or(frame);
                    out.extend(frame.iter().map(|byte| if *byte == b'\n' { b' ' } else { *byte }));
                    out.push(b'\n');
                    rest = after;
                }
                Ok(None) => break Ok(self.waiting.len() - rest.len()),
                Err(malformed) => break Err(malformed),
            }
        };
        self.waiting.drain(..taken?);
        Ok(())
    }
}

/// `None` if it cannot be told yet.
fn is_counted(bytes: &[u8]) -> Option<bool> {
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    match bytes[digits..] {
        _ if digits > 7 => Some(false),
        [] => None,
        [b' '] if digits > 0 => None,
        [b' ', next, ..] if digits > 0 => Some(next == b'<'),
        _ => Some(false),
    }
}

/// A frame, and what comes after it.
type Split<'b> = (&'b [u8], &'b [u8]);

/// The first frame, if it is whole.
fn split_frame(bytes: &[u8]) -> Result<Option<Split<'_>>, Malformed> {
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if bytes.len() == digits && digits <= 7 {
        return Ok(None);
    }
    let length = std::str::from_utf8(&bytes[..digits]).ok().and_then(|text| text.parse::<usize>().ok());
    let length = length.filter(|length| (1..=LONGEST).contains(length) && bytes.get(digits) == Some(&b' '));
    let start = digits + 1;
    let end = start + length.ok_or(Malformed)?;
    Ok((bytes.len() >= end).then(|| (&bytes[start..end], &bytes[end..])))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All lines, with the input cut into pieces of this size.
    fn lines(input: &[u8], piece: usize) -> (Vec<u8>, bool) {
        let mut frames = Frames::default();
        let mut out = Vec::new();
        let taken = input.chunks(piece).all(|piece| frames.push(piece, &mut out).is_ok());
        let well = taken && frames.finish(&mut out).is_ok();
        (out, well)
    }

    #[test]
    fn however_it_is_cut() {
        let cases: [(&[u8], &[u8], bool); 7] = [
            (b"a\nb\n\nc", b"a\nb\n\nc\n", true),
            (b"7 <1>a bc5 <2>\nd", b"<1>a bc\n<2> d\n", true),
            (b"17 times\n", b"17 times\n", true),
            (b"2026-01-01 x\n", b"2026-01-01 x\n", true),
            (b"", b"", true),
            (b"4 <1>a9 <2>", b"<1>a\n", false),
            (b"4 <1>ax <2>b", b"<1>a\n", false),
        ];
        for (input, wanted, well) in cases {
            for piece in 1..=input.len().max(1) {
                let (out, fine) = lines(input, piece);
                assert_eq!((String::from_utf8_lossy(&out), fine), (String::from_utf8_lossy(wanted), well), "{piece}");
            }
        }
    }

    #[test]
    fn endless_lines_and_frames_are_given_up() {
        let mut frames = Frames::default();
        assert_eq!(frames.push(&vec![b'x'; LONGEST + 1], &mut Vec::new()), Err(Malformed));
        assert_eq!(Frames::default().push(b"9999999 <", &mut Vec::new()), Err(Malformed));
    }
}
