//! How a control plane decodes.

use ucl_data_plane::Geometry;
use ucl_equations::Workspace;
use ucl_learned::Outputs;

use super::ControlPlane;
use crate::appended::Appended;
use crate::decoder::classic::Classic;
use crate::decoder::judge::Fallback;
use crate::decoder::learned::Learned;
use crate::decoder::{DecodeError, Decoder, DecoderKind, LinearSystem, refine};
use crate::delta::Delta;
use crate::key_state::RaisedFloors;
use crate::settings::{Settings, SettingsError};
use crate::view::NetworkAtCut;

pub(crate) enum Mode {
    Classic(Classic),
    Learned { network: Box<Learned>, fallback: Classic },
    Delta(Delta),
}

/// What a snapshot decoder made of a system.
struct Decoded {
    x: Vec<f64>,
    by: DecoderKind,
    fallback: bool,
    network: Option<NetworkAtCut>,
    outputs: Option<Outputs>,
}

impl Decoded {
    fn by_classic(classic: &mut Classic, system: &LinearSystem<'_>) -> Result<Self, DecodeError> {
        Ok(Self { x: classic.decode(system)?, by: classic.kind(), fallback: false, network: None, outputs: None })
    }
}

/// What a snapshot decoder made of the counters.
pub(crate) struct DecodedSnapshot {
    /// Estimates by column of the open segment.
    pub estimates: Vec<f64>,
    /// The appended segments with their estimates.
    pub appended: Appended,
    /// Least count of each column's key, the appended segments' first.
    pub lowers: Vec<f64>,
    pub answered_by: DecoderKind,
    /// True if that is another decoder than the configured one.
    pub fallback: bool,
    /// The network, if it was asked.
    pub network: Option<NetworkAtCut>,
    /// What its outputs say of it, also if it did not answer.
    pub outputs: Option<Outputs>,
}

impl Mode {
    pub fn new(settings: &Settings, geometry: Geometry) -> Result<Self, SettingsError> {
        settings.decoder.supports(&geometry)?;
        Ok(match settings.decoder {
            DecoderKind::Delta => Self::Delta(Delta::new(settings.retain_epochs)),
            DecoderKind::Learned | DecoderKind::Refined => {
                let learned = settings.learned.clone();
                let network = Learned::new(geometry, learned, settings.budget(), settings.fallback, settings.seed)?;
                Self::Learned { network: Box::new(network), fallback: fallback_of(geometry, settings) }
            }
            kind => Self::Classic(Classic::new(kind, settings.em).expect("the other kinds are classic")),
        })
    }

    /// Decodes counters by the snapshot decoder; which one answered, and whether as a fallback.
    fn decode(&mut self, settings: &Settings, system: &LinearSystem<'_>) -> Result<Decoded, DecodeError> {
        match self {
            Self::Classic(classic) => Decoded::by_classic(classic, system),
            Self::Learned { network, fallback } => {
                let x = if network.is_ready() { Some(network.decode(system)?) } else { None };
                let outputs = x.as_ref().map(|x| Outputs::of(system.columns, system.counters, x));
                match x.filter(|_| answers(network, settings, outputs.as_ref())) {
                    Some(mut x) => {
                        let at_cut = NetworkAtCut { solver: network.shared(), counters: system.counters.to_vec() };
                        if settings.decoder == DecoderKind::Refined {
                            x = refine(system, &x, &settings.em, &mut Workspace::default())?;
                        }
                        Ok(Decoded { x, by: settings.decoder, fallback: false, network: Some(at_cut), outputs })
                    }
                    None => Ok(Decoded { fallback: true, outputs, ..Decoded::by_classic(fallback, system)? }),
                }
            }
            Self::Delta(_) => unreachable!("delta decodes epochs"),
        }
    }
}

/// The decoder that answers while the network cannot.
pub(crate) fn fallback_of(geometry: Geometry, settings: &Settings) -> Classic {
    let kind = if geometry.signed { DecoderKind::Lsmr } else { DecoderKind::Em };
    Classic::new(kind, settings.em).expect("a classic kind")
}

/// Whether a network that is ready answers. The refined decoder takes from it what EM can use, so
/// it needs no verdict.
fn answers(network: &Learned, settings: &Settings, outputs: Option<&Outputs>) -> bool {
    let collapsed = settings.fallback == Fallback::WhenBetter && outputs.is_some_and(Outputs::collapsed);
    settings.decoder == DecoderKind::Refined || (network.is_trusted() && !collapsed)
}

impl ControlPlane {
    /// Decodes the open segment with these counters, together with the appended ones: not for
    /// delta.
    pub(crate) fn decode_snapshot(
        &mut self,
        counters: &[i64],
        raised: &RaisedFloors,
        smallest_weight: u64,
    ) -> Result<DecodedSnapshot, DecodeError> {
        let columns = self.appended.columns(self.segment.columns());
        let counters: Vec<f64> = self.appended.counters(counters).iter().map(|&counter| counter as f64).collect();
        let lower = |key| raised.of(&self.keys, key).lower(smallest_weight);
        let lowers = self.appended.lowers(&self.segment, lower);
        let geometry = self.segment.config().shape.geometry();
        let system = LinearSystem { columns: &columns, geometry, counters: &counters, known: &lowers };
        let Decoded { x, by: answered_by, fallback, network, outputs } = self.mode.decode(&self.settings, &system)?;
        let (appended, estimates) = self.appended.split(x);
        Ok(DecodedSnapshot { estimates, appended, lowers, answered_by, fallback, network, outputs })
    }
}
