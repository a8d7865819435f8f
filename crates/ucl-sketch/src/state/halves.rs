//! A [`Device`] and a [`Station`] that are written down, each without the other.

use serde::{Deserialize, Serialize};
use ucl_control_plane::{ControlPlane, Settings, Verdict};
use ucl_data_plane::{Config, Hashing, ensure};
use ucl_wire::{EncoderState, Header, Receiver};

use super::container::{Sections, pack};
use super::{
    LoadError, SaveError, Section, control_sections, encode, load_section, optional, read_control, read_plane, required,
};
use crate::device::{Device, Held};
use crate::station::Station;

/// The section of that name.
#[derive(Serialize, Deserialize)]
struct DeviceSection {
    config: Config,
    hashing: u8,
    /// Carries that are held back, by counter; `None` if none are to be.
    held: Option<Vec<(u32, i64)>>,
}

/// The section of that name, but for a station that has received nothing.
#[derive(Serialize, Deserialize)]
struct StationSection {
    config: Config,
    hashing: u8,
    expects: Header,
    verdict: Option<Verdict>,
    settled: bool,
}

fn hashing(number: u8, section: Section) -> Result<Hashing, LoadError> {
    Hashing::from_number(number)
        .ok_or_else(|| LoadError::Malformed { section, why: format!("there are no hash functions {number}") })
}

impl Device {
    /// Returns the state as bytes, from which the device goes on exactly where it stopped. Messages
    /// that were not taken yet are not part of it.
    pub fn to_bytes(&self) -> Vec<u8> {
        let config = *self.plane.config();
        let held = self.held.as_ref().map(|Held(carries)| {
            (0..).zip(carries).filter(|&(_, &times)| times != 0).map(|(at, &times)| (at, times)).collect()
        });
        let section = DeviceSection { config, hashing: config.seed.hashing().number(), held };
        let mut sections = vec![
            (Section::Device, encode(&section)),
            (Section::DataPlane, encode(&self.plane)),
            (Section::Uplink, encode(&self.encoder.state())),
        ];
        sections.extend(load_section(&self.plane));
        pack(&sections)
    }

    /// Loads a device that [`Device::to_bytes`] wrote, and continues where it stopped.
    ///
    /// ```
    /// use ucl_sketch::{Device, UclSketch};
    /// let mut device = UclSketch::builder().memory("16KB").device()?;
    /// device.insert(b"tea", 1)?;
    /// let again = Device::from_bytes(&device.to_bytes())?;
    /// assert_eq!((again.items(), again.to_bytes()), (1, device.to_bytes()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the bytes are not the state of a device, or were damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, LoadError> {
        let file = Sections::unpack(bytes)?;
        let DeviceSection { config, hashing: number, held } = required(&file, Section::Device)?;
        let config = config.hashed_by(hashing(number, Section::Device)?);
        let plane = read_plane(&file, &config)?;
        let encoder: EncoderState = required(&file, Section::Uplink)?;
        ensure(encoder.next().stream == 0, || format!("stream {}, but a device has 0", encoder.next().stream))?;
        let counters = config.shape.geometry().counters();
        let held = match held {
            None => None,
            Some(carries) if carries.is_empty() => Some(Held::default()),
            Some(carries) => {
                let mut by_counter = vec![0i64; counters];
                for (at, times) in carries {
                    let counter = by_counter.get_mut(at as usize).filter(|counter| **counter == 0);
                    ensure(counter.is_some(), || format!("carries of counter {at} are held, of {counters}"))?;
                    counter.into_iter().for_each(|counter| *counter = times);
                }
                Some(Held(by_counter))
            }
        };
        Device::restore(plane, encoder, held)
    }
}

impl Station {
    /// Returns the state as bytes, from which the station goes on exactly where it stopped. The
    /// same state gives the same bytes.
    ///
    /// # Errors
    /// If the station has failed, or is in the middle of an epoch: its state is complete at cuts
    /// alone.
    pub fn to_bytes(&self) -> Result<Vec<u8>, SaveError> {
        let (Some(control), Some(&config)) = (&self.control, self.receiver.segment()) else {
            return Ok(pack(&[(Section::Station, encode(&None::<StationSection>))]));
        };
        let (parts, verdict, settled) = control_sections(control)?;
        control.check_at_cut()?;
        let hashing = config.seed.hashing().number();
        let expects = self.receiver.expects();
        let section = Some(StationSection { config, hashing, expects, verdict, settled });
        let mut sections = vec![(Section::Station, encode(&section))];
        sections.extend(parts);
        Ok(pack(&sections))
    }

    /// Loads a station that [`Station::to_bytes`] wrote, with the settings of the station that
    /// wrote it.
    ///
    /// ```
    /// use ucl_sketch::{Settings, Station, UclSketch};
    /// let mut device = UclSketch::builder().memory("16KB").device()?;
    /// device.insert(b"tea", 1)?;
    /// device.cut();
    /// let mut station = Station::new(Settings::default());
    /// while let Some(message) = device.next_message() {
    ///     station.receive(&message.bytes)?;
    /// }
    /// let mut again = Station::from_bytes(&station.to_bytes()?, Settings::default())?;
    /// assert_eq!(again.view_at_cut()?.estimate("tea").count, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the bytes are not the state of a station with these settings, or were damaged.
    pub fn from_bytes(bytes: &[u8], settings: Settings) -> Result<Self, LoadError> {
        let file = Sections::unpack(bytes)?;
        let section: Option<Option<StationSection>> = optional(&file, Section::Station)?;
        let mut station = Station::new(settings);
        let Some(section) = section.ok_or(LoadError::Missing { section: Section::Station })? else {
            return Ok(station);
        };
        let StationSection { config, hashing: number, expects, verdict, settled } = section;
        let config = config.hashed_by(hashing(number, Section::Station)?);
        let state = read_control(&file, verdict, settled)?;
        let settings = Settings { seed: config.seed.folded(), ..station.settings.clone() };
        let control = ControlPlane::restore(config, settings, state)?;
        control.check_at_cut()?;
        ensure(expects.stream == 0 && expects.epoch == control.cuts(), || {
            format!("{expects:?} comes next, after {} cuts", control.cuts())
        })?;
        station.receiver = Receiver::resume(expects, config);
        station.control = Some(control);
        Ok(station)
    }
}
