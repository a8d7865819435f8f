//! `csv:COLUMN` and `tsv:COLUMN`, with quoting as in RFC 4180: quoted fields may hold delimiters, newlines and doubled quotes.

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};

use super::weight::weight;
use super::{Decode, Window};
use crate::MAX_RECORD_BYTES;
use crate::collect::{Collector, Halt};
use crate::error::{BadReason, Place, ReadErrorKind};
use crate::format::Column;

/// What some spreadsheets put before the header row.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

pub(super) struct Table {
    reader: Reader,
    key: Column,
    weight: Option<Column>,
    /// Numbers of the key and weight columns, from 1; known after the header row.
    columns: Option<(usize, Option<usize>)>,
    /// The current row: unquoted fields side by side, and where they end.
    row: Vec<u8>,
    row_len: usize,
    ends: Vec<usize>,
    fields: usize,
    /// The line on which the current row starts.
    line: u64,
    /// Inside a row, as opposed to the empty lines before it.
    in_row: bool,
    /// The place for a byte order mark is behind us.
    begun: bool,
    /// The current row is too long and was given up.
    overlong: bool,
}

impl Table {
    pub fn new(delimiter: u8, key: Column, weight: Option<Column>) -> Self {
        let columns = match (&key, &weight) {
            (Column::Number(key), None) => Some((*key, None)),
            (Column::Number(key), Some(Column::Number(weight))) => Some((*key, Some(*weight))),
            _ => None,
        };
        let reader = ReaderBuilder::new().delimiter(delimiter).build();
        let (row, ends) = (vec![0; 1 << 12], vec![0; 1 << 6]);
        Self {
            reader,
            key,
            weight,
            columns,
            row,
            row_len: 0,
            ends,
            fields: 0,
            line: 1,
            in_row: false,
            begun: false,
            overlong: false,
        }
    }

    /// Field `number` of the current row, from 1. `ends` count from the start of the row.
    fn field(&self, number: usize) -> Option<&[u8]> {
        let end = *self.ends[..self.fields].get(number - 1)?;
        let start = if number == 1 { 0 } else { self.ends[number - 2] };
        Some(&self.row[start..end])
    }

    /// Finds the columns in the header row.
    fn header(&mut self, out: &Collector<'_>) -> Result<(), Halt> {
        let names: Vec<&[u8]> = (1..=self.fields).filter_map(|number| self.field(number)).collect();
        let find = |column: &Column| match column {
            Column::Number(number) => Ok(*number),
            Column::Name(name) => {
                names.iter().position(|field| *field == name.as_bytes()).map(|i| i + 1).ok_or_else(|| {
                    let available: Vec<_> = names.iter().map(|name| String::from_utf8_lossy(name)).collect();
                    let (input, column) = (out.input.clone(), column.to_string());
                    Halt::Failed(ReadErrorKind::NoColumn { input, column, available: available.join(", ") })
                })
            }
        };
        self.columns = Some((find(&self.key)?, self.weight.as_ref().map(find).transpose()?));
        Ok(())
    }

    /// The current row is complete.
    fn finish_row(&mut self, out: &mut Collector<'_>) -> Result<(), Halt> {
        let place = Place::Line(self.line);
        match self.columns {
            _ if self.overlong => {}
            None => self.header(out)?,
            Some((key_column, weight_column)) => match (self.field(key_column), weight_column.map(|n| self.field(n))) {
                (Some(key), None) => out.key(key, 1, place)?,
                (Some(key), Some(Some(text))) => {
                    if let Some(weight) = weight(text, place, out)? {
                        out.key(key, weight, place)?;
                    }
                }
                _ => {
                    let wanted = key_column.max(weight_column.unwrap_or(0));
                    out.bad(place, BadReason::MissingColumn { wanted, found: self.fields })?;
                }
            },
        }
        self.start_row();
        Ok(())
    }

    /// Parses up to the end of the row or of the input; returns what happened and how many bytes were used.
    fn parse(&mut self, input: &[u8], out: &mut Collector<'_>) -> Result<(ReadRecordResult, usize), Halt> {
        let (result, used, written, ended) =
            self.reader.read_record(input, &mut self.row[self.row_len..], &mut self.ends[self.fields..]);
        self.row_len += written;
        self.fields += ended;
        match result {
            ReadRecordResult::OutputFull | ReadRecordResult::OutputEndsFull => self.grow(out)?,
            ReadRecordResult::Record => self.finish_row(out)?,
            ReadRecordResult::InputEmpty | ReadRecordResult::End => {}
        }
        Ok((result, used))
    }

    fn start_row(&mut self) {
        self.row_len = 0;
        self.fields = 0;
        self.in_row = false;
        self.overlong = false;
    }

    fn grow(&mut self, out: &mut Collector<'_>) -> Result<(), Halt> {
        if self.overlong || self.row.len().max(self.ends.len()) >= MAX_RECORD_BYTES {
            if !self.overlong {
                self.overlong = true;
                out.bad(Place::Line(self.line), BadReason::RecordTooLong)?;
            }
            // Write over what is there: nobody will look at this row.
            self.row_len = 0;
            self.fields = 0;
        } else {
            self.row.resize(2 * self.row.len(), 0);
            self.ends.resize(2 * self.ends.len(), 0);
        }
        Ok(())
    }
}

impl Decode for Table {
    fn decode(&mut self, window: Window<'_>, out: &mut Collector<'_>) -> Result<usize, Halt> {
        let mut input = window.bytes;
        if !self.begun {
            if BYTE_ORDER_MARK.starts_with(input) && !window.end {
                return Ok(0);
            }
            self.begun = true;
            input = input.strip_prefix(BYTE_ORDER_MARK).unwrap_or(input);
        }
        while !input.is_empty() {
            if !self.in_row {
                // Empty lines before a row belong to no row.
                let empty = input.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
                let newlines = input[..empty].iter().filter(|byte| **byte == b'\n').count();
                self.line = self.reader.line() + newlines as u64;
                self.in_row = empty < input.len();
            }
            let (_, used) = self.parse(input, out)?;
            input = &input[used..];
        }
        // The last row may lack its newline. Where a newline does not end the row, it stands inside quotes.
        while window.end && self.in_row {
            let (result, used) = self.parse(b"\n", out)?;
            if used == 1 && !matches!(result, ReadRecordResult::Record) {
                if !self.overlong {
                    out.bad(Place::Line(self.line), BadReason::UnclosedQuote)?;
                }
                self.start_row();
            }
        }
        Ok(window.bytes.len())
    }
}
