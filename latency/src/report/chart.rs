//! The percentile curves, as SVG: each further nine of the percentile has the same room, time is logarithmic.

use std::fmt::{self, Write};

use super::figures::micros;
use super::html::escape;

/// One curve.
pub(super) struct Series<'a> {
    pub(super) name: &'static str,
    /// Percentile and ns, as far as there are samples enough.
    pub(super) points: &'a [(f64, i64)],
    pub(super) max_ns: i64,
    pub(super) floor_p50_ns: Option<u64>,
}

/// Of the picture, in its own units, which are pixels where it is not scaled.
#[derive(Clone, Copy)]
pub(super) struct Size {
    pub(super) width: f64,
    pub(super) height: f64,
}

/// Percentiles with a line and a label, and a mark on each curve.
const TICKS: [(f64, &str); 5] = [
    (50.0, "50"),
    (90.0, "90"),
    (99.0, "99"),
    (99.9, "99.9"),
    (99.99, "99.99"),
];

const LEFT: f64 = 58.0;
const RIGHT: f64 = 44.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 40.0;

/// The map from percentile and time to the picture.
struct Axes {
    size: Size,
    /// Nines at the right edge.
    nines_max: f64,
    /// Decimal logarithms of the lowest and highest time, ns.
    low: f64,
    high: f64,
}

/// Writes the picture. Nothing is written when no curve has a point above zero.
pub(super) fn write(to: &mut String, title: &str, series: &[Series<'_>], size: Size) -> fmt::Result {
    let Some(axes) = Axes::around(series, size) else {
        return Ok(());
    };
    write!(
        to,
        "<svg role=\"img\" aria-label=\"{title}\" viewBox=\"0 0 {width} {height}\">",
        title = escape(title),
        width = size.width,
        height = size.height
    )?;
    axes.write_grid(to)?;
    for (index, one) in series.iter().enumerate() {
        axes.write_series(to, one, index)?;
    }
    to.write_str("</svg>")
}

impl Axes {
    fn around(series: &[Series<'_>], size: Size) -> Option<Self> {
        let times = || {
            let floors = series.iter().filter_map(|one| one.floor_p50_ns).map(u64::cast_signed);
            let points = series
                .iter()
                .flat_map(|one| one.points.iter().map(|&(_, ns)| ns).chain([one.max_ns]));
            points.chain(floors).filter(|&ns| ns > 0).map(log10)
        };
        let last = |one: &Series<'_>| one.points.last().map(|&(percentile, _)| nines(percentile));
        let nines_max = series.iter().filter_map(last).fold(f64::NEG_INFINITY, f64::max);
        let (low, high) = (
            times().fold(f64::INFINITY, f64::min),
            times().fold(f64::NEG_INFINITY, f64::max),
        );
        if !nines_max.is_finite() || !low.is_finite() {
            return None;
        }
        // Some air, and never a line without height or width.
        Some(Self {
            size,
            nines_max: nines_max.max(1.0) + 0.35,
            low: low - 0.08,
            high: (high + 0.06).max(low + 0.3),
        })
    }

    fn x(&self, nines: f64) -> f64 {
        LEFT + nines / self.nines_max * (self.size.width - LEFT - RIGHT)
    }

    fn y(&self, ns: i64) -> f64 {
        let bottom = self.size.height - BOTTOM;
        let share = (log10(ns.max(1)) - self.low) / (self.high - self.low);
        bottom - share.clamp(0.0, 1.0) * (bottom - TOP)
    }

    /// Where the longest times stand: behind the last percentile that has samples enough.
    fn x_max(&self) -> f64 {
        self.size.width - RIGHT
    }

    fn write_grid(&self, to: &mut String) -> fmt::Result {
        let (left, right, bottom) = (LEFT, self.x_max(), self.size.height - BOTTOM);
        for ns in self.time_ticks() {
            let y = self.y(ns);
            write!(
                to,
                "<line class=\"grid\" x1=\"{left:.1}\" x2=\"{right:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
                 <text class=\"end\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                left - 8.0,
                y + 4.0,
                short_time(ns)
            )?;
        }
        for (percentile, label) in TICKS
            .into_iter()
            .filter(|(percentile, _)| nines(*percentile) < self.nines_max)
        {
            let x = self.x(nines(percentile));
            write!(
                to,
                "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{bottom:.1}\"/>\
                 <text class=\"mid\" x=\"{x:.1}\" y=\"{:.1}\">{label}</text>",
                bottom + 16.0
            )?;
        }
        write!(
            to,
            "<text class=\"mid\" x=\"{right:.1}\" y=\"{:.1}\">max</text>\
             <text class=\"mid\" x=\"{:.1}\" y=\"{:.1}\">percentile of orders</text>",
            bottom + 16.0,
            f64::midpoint(left, right),
            bottom + 33.0
        )
    }

    /// The marks differ in shape as well as in colour.
    fn write_series(&self, to: &mut String, series: &Series<'_>, index: usize) -> fmt::Result {
        let class = format!("series{index}");
        if let Some(floor) = series.floor_p50_ns {
            let y = self.y(floor.cast_signed());
            write!(
                to,
                "<line class=\"{class} floor\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\">\
                 <title>{} floor at the median: {} µs</title></line>",
                self.x_max(),
                series.name,
                micros(floor.cast_signed())
            )?;
        }
        write!(to, "<path class=\"{class} curve\" d=\"")?;
        for (place, &(percentile, ns)) in series.points.iter().enumerate() {
            let command = if place == 0 { 'M' } else { 'L' };
            write!(to, "{command}{:.1} {:.1}", self.x(nines(percentile)), self.y(ns))?;
        }
        to.write_str("\"/>")?;
        for (percentile, label) in TICKS {
            let point = series
                .points
                .iter()
                .find(|(at, _)| (nines(*at) - nines(percentile)).abs() < 0.04);
            if let Some(&(at, ns)) = point {
                self.write_mark(
                    to,
                    &class,
                    index,
                    self.x(nines(at)),
                    &format!("{} p{label}", series.name),
                    ns,
                )?;
            }
        }
        self.write_mark(
            to,
            &class,
            index,
            self.x_max(),
            &format!("{} max", series.name),
            series.max_ns,
        )
    }

    fn write_mark(&self, to: &mut String, class: &str, shape: usize, x: f64, label: &str, ns: i64) -> fmt::Result {
        let (y, label) = (self.y(ns), format!("{label}: {} µs", micros(ns)));
        match shape {
            0 => write!(
                to,
                "<circle class=\"{class} mark\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\">"
            )?,
            _ => write!(
                to,
                "<rect class=\"{class} mark\" x=\"{:.1}\" y=\"{:.1}\" width=\"6.4\" height=\"6.4\">",
                x - 3.2,
                y - 3.2
            )?,
        }
        write!(
            to,
            "<title>{label}</title></{}>",
            if shape == 0 { "circle" } else { "rect" }
        )
    }

    /// 1, 2 and 5 of each decade within the axis, or only 1 when it has many.
    fn time_ticks(&self) -> Vec<i64> {
        let steps: &[i64] = if self.high - self.low > 2.5 { &[1] } else { &[1, 2, 5] };
        let decades = (0..=12).map(|decade| 10_i64.pow(decade));
        let ticks = decades.flat_map(|decade| steps.iter().map(move |step| step * decade));
        ticks
            .filter(|&ns| (self.low..=self.high).contains(&log10(ns)))
            .collect()
    }
}

/// 0 for 0, 1 for 90, 2 for 99, 3 for 99.9 …
fn nines(percentile: f64) -> f64 {
    -(1.0 - percentile / 100.0).max(1e-9).log10()
}

#[allow(clippy::cast_precision_loss, reason = "a point of a picture")]
fn log10(ns: i64) -> f64 {
    (ns as f64).log10()
}

/// A round time with its unit.
fn short_time(ns: i64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{} µs", ns / 1_000),
        1_000_000..1_000_000_000 => format!("{} ms", ns / 1_000_000),
        _ => format!("{} s", ns / 1_000_000_000),
    }
}
