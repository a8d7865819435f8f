//! `csv:COLUMN` and `tsv:COLUMN`. Quoting is that of RFC 4180, for both: a field that begins with a
//! double quote ends with the next single one, and may hold delimiters, newlines and doubled
//! quotes. A quote in the middle of a field is an ordinary character.

use csv_core::{ReadRecordResult, Reader};

use super::weight::{is_number, weight};
use super::{Decode, ReadWindow};
use crate::collect::{Collector, Halt};
use crate::composite::push_part;
use crate::error::{BadReason, BadRecord, Place, ReadErrorKind, SpecError};
use crate::format::Column;
use crate::options::AssumedHeader;
use crate::{MAX_COLUMNS, MAX_RECORD_BYTES};

/// Mark that some spreadsheets put before the header row.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

pub(super) struct Table {
    reader: Reader,
    keys: Vec<Column>,
    weight: Option<Column>,
    /// Numbers of the key and weight columns, from 1; known after the header row if they are asked
    /// for by name.
    columns: Option<(Vec<usize>, Option<usize>)>,
    /// A key of several parts.
    key: Vec<u8>,
    /// True if the next row is a header: `None` if it has to be looked at.
    header: Option<bool>,
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
    /// # Errors
    /// A column asked for by name where there is no header row.
    pub fn new(
        reader: Reader,
        keys: Vec<Column>,
        weight: Option<Column>,
        header: Option<bool>,
    ) -> Result<Self, SpecError> {
        let named = |column: &Column| if let Column::Name(name) = column { Some(name.clone()) } else { None };
        let first_name = keys.iter().chain(&weight).find_map(named);
        if let Some(column) = first_name.clone().filter(|_| header == Some(false)) {
            return Err(SpecError::NoHeader { column });
        }
        let number = |column: &Column| if let Column::Number(number) = column { *number } else { 0 };
        let columns = first_name.is_none().then(|| (keys.iter().map(number).collect(), weight.as_ref().map(number)));
        let header = if columns.is_none() { Some(true) } else { header };
        let row = vec![0; 1 << 12];
        let ends = vec![0; 1 << 6];
        Ok(Self {
            reader,
            keys,
            weight,
            columns,
            key: Vec::new(),
            header,
            row,
            row_len: 0,
            ends,
            fields: 0,
            line: 1,
            in_row: false,
            begun: false,
            overlong: false,
        })
    }

    /// Field `number` of the current row, from 1. `ends` count from the start of the row.
    fn field(&self, number: usize) -> Option<&[u8]> {
        let end = *self.ends[..self.fields].get(number - 1)?;
        let start = if number == 1 { 0 } else { self.ends[number - 2] };
        Some(&self.row[start..end])
    }

    /// Returns true if the first row is a header, where nobody has said so. Without a weight to go
    /// by, tables are taken to have one.
    fn looks_like_header(&self, key: usize, weight: Option<usize>, out: &mut Collector<'_>) -> bool {
        let Some(key) = self.field(key) else { return false };
        if let Some(number) = weight
            && self.field(number).is_none_or(is_number)
        {
            return false;
        }
        let key = String::from_utf8_lossy(key).into_owned();
        out.summary.assumed_header.get_or_insert_with(|| AssumedHeader { input: out.input.clone(), key });
        true
    }

    /// Finds the columns in the header row.
    fn find_columns(&mut self, out: &Collector<'_>) -> Result<(), Halt> {
        let names: Vec<&[u8]> = (1..=self.fields).filter_map(|number| self.field(number)).collect();
        let find = |column: &Column| match column {
            Column::Number(number) => Ok(*number),
            Column::Name(name) => {
                names.iter().position(|field| *field == name.as_bytes()).map(|i| i + 1).ok_or_else(|| {
                    let available: Vec<_> = names.iter().map(|name| String::from_utf8_lossy(name)).collect();
                    let input = out.input.clone();
                    let column = column.to_string();
                    Halt::Failed(ReadErrorKind::NoColumn { input, column, available: available.join(", ") })
                })
            }
        };
        let keys = self.keys.iter().map(find).collect::<Result<_, _>>()?;
        self.columns = Some((keys, self.weight.as_ref().map(find).transpose()?));
        Ok(())
    }

    /// The current row is complete.
    fn finish_row(&mut self, out: &mut Collector<'_>) -> Result<(), Halt> {
        let first = self.header.replace(false);
        match self.columns.take() {
            None if self.overlong => {}
            None => self.find_columns(out)?,
            Some(columns) => {
                let key = columns.0[0];
                let weight = columns.1;
                let passed_over = self.overlong || first.unwrap_or_else(|| self.looks_like_header(key, weight, out));
                let item = if passed_over { Ok(()) } else { self.item(&columns, out) };
                self.columns = Some(columns);
                item?;
            }
        }
        self.start_row();
        Ok(())
    }

    /// Takes the current row as an item.
    fn item(
        &mut self,
        (keys, weight_column): &(Vec<usize>, Option<usize>),
        out: &mut Collector<'_>,
    ) -> Result<(), Halt> {
        let place = Place::Line(self.line);
        let last = keys.iter().copied().chain(*weight_column).max().unwrap_or(1);
        if last > self.fields {
            return out.bad(place, BadReason::MissingColumn { wanted: last, found: self.fields });
        }
        let weight = match weight_column.and_then(|number| self.field(number)) {
            None => 1,
            Some(text) => match weight(text, place, out)? {
                Some(weight) => weight,
                None => return Ok(()),
            },
        };
        if let [key] = keys[..] {
            return out.key(self.field(key).unwrap_or_default(), weight, place);
        }
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        for (index, number) in keys.iter().enumerate() {
            push_part(&mut key, self.field(*number).unwrap_or_default(), index == 0);
        }
        let taken = out.key(&key, weight, place);
        self.key = key;
        taken
    }

    /// Parses up to the end of the row or of the input; returns what happened and how many bytes
    /// were used.
    fn parse(&mut self, input: &[u8], out: &mut Collector<'_>) -> Result<(ReadRecordResult, usize), Halt> {
        let (result, used, written, ended) =
            self.reader.read_record(input, &mut self.row[self.row_len..], &mut self.ends[self.fields..]);
        self.row_len += written;
        self.fields += ended;
        match result {
            ReadRecordResult::OutputFull => {
                if !self.give_up(self.row.len() >= MAX_RECORD_BYTES, BadReason::RecordTooLong, out)? {
                    self.row.resize(2 * self.row.len(), 0);
                }
            }
            ReadRecordResult::OutputEndsFull => {
                if !self.give_up(self.ends.len() >= MAX_COLUMNS, BadReason::TooManyColumns, out)? {
                    self.ends.resize((2 * self.ends.len()).min(MAX_COLUMNS), 0);
                }
            }
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

    /// Gives up the current row if it is too long, or has been given up; whether it is so.
    fn give_up(&mut self, too_long: bool, reason: BadReason, out: &mut Collector<'_>) -> Result<bool, Halt> {
        if !self.overlong && !too_long {
            return Ok(false);
        }
        if !self.overlong {
            self.overlong = true;
            let place = Place::Line(self.line);
            if self.columns.is_none() {
                // Without its header nothing can be found in this table, whatever is done about bad
                // records.
                let record = BadRecord { input: out.input.clone(), place, reason };
                return Err(Halt::Failed(ReadErrorKind::Bad(record)));
            }
            out.bad(place, reason)?;
        }
        // Write over what is there: nobody will look at this row.
        self.row_len = 0;
        self.fields = 0;
        Ok(true)
    }
}

impl Decode for Table {
    fn decode(&mut self, window: ReadWindow<'_>, out: &mut Collector<'_>) -> Result<usize, Halt> {
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
        // The last row may lack its newline. Where a newline does not end the row, it stands inside
        // quotes.
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
