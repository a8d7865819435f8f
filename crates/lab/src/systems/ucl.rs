//! UCL-sketch with any of its decoders, as a measured system.

use std::collections::BTreeMap;
use std::time::Instant;

use ucl_sketch::learned::Outputs;
use ucl_sketch::plan::WEIGHTED_COUNT_BITS;
use ucl_sketch::{
    BloomKind, DecoderKind, Fallback, HeavyKind, KeyFormat, Memory, Mode, QueryView, ReportRule, Settings, Shape,
    UclSketch,
};
use ucl_streams::Batch;
use ucl_zoo::paper;

use crate::system::{Answer, Extras, Pass, Request, System, SystemError, Training};

/// [`UclSketch`] as a measured system, with its answers after the end of the stream.
///
/// The learned decoder trains once, at the end, on the last window, or along the stream
/// ([`Training`]).
pub struct Ucl {
    sketch: UclSketch,
    mode: Mode,
    view: Option<QueryView>,
    extras: Extras,
}

impl Ucl {
    /// Creates a sketch of the requested shape, or of the shape that the planner chooses for the
    /// budget.
    pub fn new(request: &Request<'_>, mode: Mode) -> Result<Self, SystemError> {
        let options = request.options;
        let decoder = if let Mode::Sketch(decoder) = mode { decoder } else { DecoderKind::Delta };
        let fallback = Fallback::WhenUntrained; // what is measured is the network itself
        let mut settings = Settings { decoder, train_every: None, fallback, ..Settings::default() };
        settings.window = options.window.unwrap_or(settings.window);
        settings.em.iterations = options.iterations.unwrap_or(settings.em.iterations);
        settings.learned = options.learned.clone().unwrap_or(settings.learned);
        settings.learned.epochs = options.epochs.unwrap_or(settings.learned.epochs);
        if options.training == Training::Online && decoder.is_trained() {
            settings = settings.online();
        }

        let mut builder =
            UclSketch::builder().memory_bytes(request.budget).settings(settings.clone()).seed(request.seed.into());
        builder = builder.mode(mode);
        match (request.keys, options.code_bits.filter(|_| mode.is_mirrored())) {
            (_, Some(bits)) => builder = builder.code_bits(bits),
            (KeyFormat::Fixed(bytes), None) => builder = builder.key_bytes(bytes.into()),
            (KeyFormat::Digest | KeyFormat::Code(_), None) => {}
        }
        if options.weighted && mode.is_mirrored() {
            builder = builder.count_bits(WEIGHTED_COUNT_BITS);
        }
        if let Some(bytes) = options.uplink.filter(|_| mode == Mode::Budget) {
            builder = builder.uplink_per_item(bytes);
        }
        if mode.is_mirrored() {
            // There is no sketch to be told about.
        } else if let Some(shape) = options.shape {
            builder = builder.shape(shape);
        } else if options.paper_shapes {
            builder = builder.shape(paper::ucl_shape(request.budget, request.keys)?);
        }
        if let Some(base) = options.base.filter(|_| !mode.is_mirrored()) {
            builder = builder.base(base);
        }
        if let Some(heavy) = options.heavy.filter(|_| !mode.is_mirrored()) {
            builder = builder.heavy(heavy);
        }
        if let Some(interval) = options.interval {
            builder = builder.interval(interval);
        }
        if let Some(bits) = options.counter_bits.filter(|_| !mode.is_mirrored()) {
            builder = builder.counter_bits(bits);
        }
        if let Some(rule) = options.rule.filter(|_| !mode.is_mirrored()) {
            builder = builder.report_rule(rule);
        }
        if let Some(keys) = options.expected_keys {
            builder = builder.expected_keys(keys);
        }
        let sketch = match request.pass {
            Pass::Accuracy => builder.measure_uplink(true).build()?,
            // Its price is the encoding, and the mirror is what reads it.
            Pass::Speed if mode.is_mirrored() => builder.measure_uplink(true).build()?,
            Pass::Speed => {
                // The same data plane and the same cuts, but behind them the decoder that does
                // nothing until it is asked.
                let (config, epochs) = builder.plan()?;
                let idle = Settings { decoder: DecoderKind::Cm, ..settings };
                builder.shape(config.shape).report_rule(config.rule).epochs(epochs).settings(idle).build()?
            }
        };
        let config = sketch.config();
        let interval = sketch.interval();
        let extras = Extras {
            interval,
            rule: Some(ReportRule::name(config.rule)),
            base: Some(config.shape.base.name()),
            heavy: Some(config.shape.heavy.name()),
            shape: shape_by_name(&config.shape),
            ..Extras::default()
        };
        Ok(Self { sketch, mode, view: None, extras })
    }

    /// Returns the answers, after the end of the stream.
    pub fn view(&self) -> Option<&QueryView> {
        self.view.as_ref()
    }

    /// Trains, if it was not trained along the stream, and notes what all trainings reported.
    fn train(&mut self) -> Result<(), SystemError> {
        let online = self.sketch.with_control(|control| control.settings().train_every.is_some());
        if !online {
            self.sketch.train()?;
        }
        let extras = &mut self.extras;
        self.sketch.with_control(|control| {
            let Some(network) = control.network() else { return };
            let history = network.history();
            // Without a single snapshot nothing was trained.
            let Some(last) = history.last() else { return };
            let epochs = || history.iter().flat_map(|report| &report.epochs);
            extras.restarts = Some(history.iter().map(|report| report.restarts).sum());
            extras.train_seconds = Some(history.iter().map(|report| report.time.as_secs_f64()).sum());
            extras.train_epochs = Some(epochs().count());
            extras.losses = last.epochs.iter().map(|epoch| epoch.total).collect();
            extras.parameters = Some(network.solver().parameters());
        });
        Ok(())
    }
}

impl System for Ucl {
    fn insert(&mut self, batch: Batch<'_>) -> Result<(), SystemError> {
        match batch.fixed() {
            Some((bytes, keys)) => self.sketch.insert_flat(bytes, keys, batch.weights())?,
            None => batch.items().try_for_each(|(key, weight)| self.sketch.insert_weighted(key, weight))?,
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), SystemError> {
        let decoder = if let Mode::Sketch(decoder) = self.mode { Some(decoder) } else { None };
        if decoder.is_some_and(DecoderKind::is_trained) {
            self.train()?;
        }
        // Delta has decoded most epochs already, as they closed.
        let decoded_before = self.sketch.with_control(|control| control.decoding());
        let start = Instant::now();
        let view = self.sketch.query_view()?;
        self.extras.decode_ms = Some((decoded_before + start.elapsed()).as_secs_f64() * 1e3);
        self.extras.self_check = view.self_check().map_err(ucl_sketch::Fault::from)?.map(|check| check.residual);
        self.extras.collapsed = view.outputs().map(Outputs::collapsed);
        if decoder.is_some_and(|decoder| view.answered_by() != decoder) {
            self.extras.answered_by = Some(view.answered_by().name().to_owned());
        }
        self.view = Some(view);

        // Asking was free. Now the open epoch is closed, for what it takes on the wire to be
        // counted.
        let items = self.sketch.items();
        if self.sketch.interval().is_none_or(|interval| !items.is_multiple_of(interval)) {
            self.sketch.cut();
        }
        self.extras.uplink_bytes = self.sketch.uplink().map(|uplink| uplink.total());
        self.extras.control_bytes = Some(self.sketch.control_memory().total());
        self.extras.snapshots = Some(self.sketch.with_control(|control| control.cuts()));
        Ok(())
    }

    fn estimate(&self, key: &[u8]) -> Answer {
        let Some(view) = &self.view else { return Answer { estimate: 0, bounds: None } };
        let answer = view.estimate(key);
        Answer { estimate: answer.estimate, bounds: Some((answer.lower, answer.upper)) }
    }

    fn unbounded(&self, key: &[u8]) -> Option<u64> {
        self.view.as_ref()?.unbounded(key)
    }

    fn ask_network(&self, keys: &mut dyn Iterator<Item = &[u8]>) -> Option<u64> {
        let mut network = self.view.as_ref()?.network()?.ok()?;
        Some(keys.filter_map(|key| network.estimate(key).ok()).sum())
    }

    fn knows(&self, key: &[u8]) -> Option<bool> {
        let registry = self.view.as_ref()?.registry();
        let mut room = [0; 16];
        Some(registry.identity(key, &mut room).is_some_and(|identity| registry.find(identity).is_some()))
    }

    fn memory(&self) -> Memory {
        self.sketch.memory()
    }

    fn extras(&self) -> Extras {
        self.extras.clone()
    }
}

fn shape_by_name(shape: &Shape) -> BTreeMap<&'static str, u64> {
    if matches!(shape.heavy, HeavyKind::Mirrored(_)) && !shape.absorbs() {
        // It has no counters, and its filter remembers names.
        return BTreeMap::from([("slots", shape.slots.into()), ("name_bits", shape.bloom_bits.into())]);
    }
    let mut sizes = BTreeMap::from([
        ("slots", shape.slots.into()),
        ("vote_ratio", shape.vote_ratio.into()),
        ("rows", shape.rows.into()),
        ("width", shape.width.into()),
        ("counter_bits", shape.counter_bits.bits().into()),
        ("bloom_bits", shape.bloom_bits.into()),
    ]);
    // Fingerprints have no hashes.
    if shape.bloom != BloomKind::Recent {
        sizes.insert("bloom_hashes", shape.bloom_hashes.into());
    }
    sizes
}
