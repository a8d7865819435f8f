//! The fields of a web server's log.

use std::fmt;
use std::str::FromStr;

/// A field of a line in the combined log format of Apache and nginx:
/// `IP - USER [TIME] "METHOD URL PROTOCOL" STATUS BYTES "REFERER" "AGENT"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogField {
    /// `ip`: address or name of the client.
    Ip,
    /// `user`: name of the user, `-` if nobody has logged in.
    User,
    /// `time`: date and time as written, such as `10/Oct/2000:13:55:36 -0700`.
    Time,
    /// `day`: the date of `time`.
    Day,
    /// `hour`: the date and hour of `time`.
    Hour,
    /// `minute`: the date, hour and minute of `time`.
    Minute,
    /// `request`: the whole request line.
    Request,
    /// `method`: first word of the request, `-` if the request is malformed.
    Method,
    /// `url`: address as requested, `-` if the request is malformed.
    Url,
    /// `path`: the URL up to `?`.
    Path,
    /// `status`: status code of the answer, three digits.
    Status,
    /// `bytes`: size of the answer, `-` for none.
    Bytes,
    /// `referer`: address of the page that linked here, `-` for none.
    Referer,
    /// `agent`: name of the browser or program that asked.
    Agent,
}

const NAMES: [(&str, LogField); 14] = [
    ("ip", LogField::Ip),
    ("user", LogField::User),
    ("time", LogField::Time),
    ("day", LogField::Day),
    ("hour", LogField::Hour),
    ("minute", LogField::Minute),
    ("request", LogField::Request),
    ("method", LogField::Method),
    ("url", LogField::Url),
    ("path", LogField::Path),
    ("status", LogField::Status),
    ("bytes", LogField::Bytes),
    ("referer", LogField::Referer),
    ("agent", LogField::Agent),
];

impl FromStr for LogField {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        NAMES.iter().find(|(name, _)| *name == text).map(|(_, field)| *field).ok_or_else(|| {
            let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
            format!("`{text}` is not a field of the combined log format; its fields are {}", names.join(", "))
        })
    }
}

impl fmt::Display for LogField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NAMES.iter().find(|(_, field)| field == self).map_or("", |(name, _)| name))
    }
}
