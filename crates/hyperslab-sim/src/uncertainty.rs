//! How sure a simulated time is: parameters drawn from the calibration, its errors, and the load of others.

use crate::judgement::quantile;
use crate::layer_effects::LayerEffects;
use crate::simulation::simulate;
use crate::system::System;
use crate::timing::{PARAMETERS, TimingParameters};
use crate::walk::{WalkEvent, Walked};
use serde::Serialize;

/// Seconds that half and nine of ten runs lie between.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Intervals {
    /// Half of the runs.
    pub half: [f64; 2],
    /// Nine of ten.
    pub ninety: [f64; 2],
    /// Why they are wider than the calibration alone would have them.
    pub reasons: Vec<String>,
}

const DRAWS: usize = 64;
/// Relative scatter of systems that nobody calibrated, as a logarithm: nine of ten within a factor of 3.
const UNCALIBRATED: f64 = 0.67;

/// The intervals around a simulated run.
pub fn intervals(walked: &Walked, system: &System, layers: &LayerEffects) -> Intervals {
    let (wider, reasons) = widening(walked, system);
    let errors = &system.calibration.errors;
    let base = system.timing.values();
    let mut random = DrawSequence(0x5EED_5EED);
    let mut seconds: Vec<f64> = Vec::with_capacity(DRAWS * 5);
    for _ in 0..DRAWS {
        let drawn: [f64; PARAMETERS] = std::array::from_fn(|at| {
            let deviation = system.calibration.deviations.get(TimingParameters::NAMES[at]).copied().unwrap_or(0.0);
            base[at] * (deviation.min(1.0) * random.normal()).exp()
        });
        let time = simulate(walked, system, layers, &TimingParameters::of(drawn)).seconds;
        // Errors of the calibration, either way, and the day.
        for _ in 0..5 {
            let error = match errors.is_empty() {
                true => UNCALIBRATED * random.normal(),
                false => {
                    let share = random.uniform();
                    quantile(errors, share) * if random.uniform() < 0.5 { -1.0 } else { 1.0 }
                }
            };
            let day = system.background.sigma * random.normal();
            seconds.push(time * (wider * error + day).clamp(-20.0, 20.0).exp());
        }
    }
    seconds.sort_by(f64::total_cmp);
    let between = |low: f64, high: f64| [quantile(&seconds, low), quantile(&seconds, high)];
    Intervals { half: between(0.25, 0.75), ninety: between(0.05, 0.95), reasons }
}

/// By what errors grow outside what was calibrated.
fn widening(walked: &Walked, system: &System) -> (f64, Vec<String>) {
    let calibration = &system.calibration;
    let mut reasons = Vec::new();
    let mut wider = 1.0;
    if calibration.errors.is_empty() {
        reasons.push(format!("nobody has calibrated {}: times may be off by a factor of 3", system.name));
        return (1.0, reasons);
    }
    let most = calibration.most_clients.max(1);
    if walked.nodes > most {
        wider += (walked.nodes as f64 / most as f64).ln();
        reasons.push(format!("{} nodes, where {most} were calibrated", walked.nodes));
    }
    let (low, high) = calls(walked);
    let [known_low, known_high] = calibration.calls.map(|bytes| bytes as f64);
    if low > 0.0 && low < known_low / 2.0 {
        wider += (known_low / low).ln() / 2.0;
        reasons.push(format!("calls of {low:.0} bytes, where at least {known_low:.0} were calibrated"));
    }
    if high > known_high * 2.0 && known_high > 0.0 {
        wider += (high / known_high).ln() / 2.0;
        reasons.push(format!("calls of {high:.0} bytes, where at most {known_high:.0} were calibrated"));
    }
    (wider, reasons)
}

/// The smallest and the largest call.
fn calls(walked: &Walked) -> (f64, f64) {
    let (mut low, mut high) = (f64::INFINITY, 0.0_f64);
    for event in &walked.events {
        if let WalkEvent::Transfer(loads) = event {
            for load in loads.iter().filter(|load| load.bytes > 0.0) {
                let call = load.bytes / load.ranks.max(1.0);
                (low, high) = (low.min(call), high.max(call));
            }
        }
    }
    (if low.is_finite() { low } else { 0.0 }, high)
}

/// Numbers that look random and are the same in every run (splitmix64).
struct DrawSequence(u64);

impl DrawSequence {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let (radius, angle) = (self.uniform().max(1e-300), self.uniform());
        (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }
}
