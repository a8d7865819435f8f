//! The systems that the lab can measure by itself: UCL-sketch with each of its decoders, the zoo of
//! other systems, and two yardsticks that make no errors.

mod exact;
mod flow_cache;
mod sample;
mod ucl;
mod zoo;

pub use exact::{ExactMap, SendKeys};
pub use flow_cache::FlowCache;
pub use sample::Sample;
pub use ucl::Ucl;
pub use zoo::Zoo;

use ucl_sketch::{DecoderKind, Mode};

use crate::registry::Method;

/// Returns all methods of this crate, in the order in which they are listed.
pub fn methods() -> Vec<Method> {
    macro_rules! ucl {
        ($name:literal, $kind:ident, $about:literal, $reference:literal) => {
            Method {
                name: $name,
                about: $about,
                reference: $reference,
                baseline: false,
                variant: false,
                build: |request| Ok(Box::new(Ucl::new(request, Mode::Sketch(DecoderKind::$kind))?)),
            }
        };
    }
    let mut methods = vec![
        ucl!(
            "ucl-learned",
            Learned,
            "UCL-sketch with the self-trained network, at the end or along the stream: --training",
            "UCL-sketch, section \"Training Strategy\""
        ),
        ucl!("ucl-refined", Refined, "UCL-sketch decoded by EM that starts from the network's output", "this project"),
        ucl!("ucl-lsqr", Lsqr, "UCL-sketch decoded by least squares (LSQR)", "Paige and Saunders, ACM TOMS 1982"),
        ucl!(
            "ucl-lsmr",
            Lsmr,
            "UCL-sketch decoded by least squares (LSMR), as PR-sketch does",
            "Fong and Saunders, SIAM J. Sci. Comput. 2011; Sheng et al., PR-Sketch, VLDB 2021"
        ),
        ucl!(
            "ucl-omp",
            Omp,
            "UCL-sketch decoded by orthogonal matching pursuit, as SeqSketch does",
            "Pati et al., Asilomar 1993; Huang et al., SeqSketch, 2021"
        ),
        ucl!("ucl-map", Map, "UCL-sketch decoded by the closed form under a Gaussian prior", "UCL-sketch, Theorem 4"),
        ucl!(
            "ucl-em",
            Em,
            "UCL-sketch decoded by expectation maximisation, from one snapshot",
            "Shepp and Vardi, IEEE TMI 1982; Kumar et al., SIGMETRICS 2004"
        ),
        ucl!("ucl-delta", Delta, "UCL-sketch with every epoch decoded on its own by EM, and added up", "this project"),
        ucl!(
            "ucl-cm",
            Cm,
            "UCL-sketch answered by the smallest counter: no equations solved",
            "Cormode and Muthukrishnan, J. Algorithms 2005"
        ),
    ];
    methods.push(Method {
        name: "ucl-exact",
        about: "a mirrored table whose evictions go up the link: every count is exact",
        reference: "this project",
        baseline: false,
        variant: false,
        build: |request| Ok(Box::new(Ucl::new(request, Mode::Exact)?)),
    });
    methods.push(Method {
        name: "ucl-budget",
        about: "the same while --uplink allows; what does not fit is absorbed by a sketch",
        reference: "this project",
        baseline: false,
        variant: false,
        build: |request| Ok(Box::new(Ucl::new(request, Mode::Budget)?)),
    });
    methods.push(Method {
        name: "flowcache",
        about: "a flow cache of whole keys, least recently used out, whose evictions are sent: exact",
        reference: "what NetFlow and IPFIX exporters do (RFC 7011)",
        baseline: false,
        variant: false,
        build: |request| Ok(Box::new(FlowCache::new(request)?)),
    });
    methods.push(Method {
        name: "sample",
        about: "a uniform sample of the items, sent as whole keys, as many as --uplink allows",
        reference: "what sFlow agents do (RFC 3176)",
        baseline: false,
        variant: true,
        build: |request| Ok(Box::new(Sample::new(request))),
    });
    methods.extend(zoo::methods());
    methods.push(Method {
        name: "elastic-sum",
        about: "Elastic Sketch fed the total of every key in ascending order, instead of the stream",
        reference: "the public code of the UCL-sketch paper",
        baseline: false,
        variant: true,
        build: |request| Ok(Box::new(Zoo::fed_totals("elastic", request)?)),
    });
    methods.extend([
        Method {
            name: "exact-map",
            about: "an exact hash map where the stream is seen, whatever it takes: the right tool where it fits",
            reference: "a yardstick",
            baseline: true,
            variant: false,
            build: |_| Ok(Box::new(ExactMap::default())),
        },
        Method {
            name: "send-keys",
            about: "every key sent as it is, and counted elsewhere: no memory here, all of it uplink",
            reference: "a yardstick",
            baseline: true,
            variant: false,
            build: |_| Ok(Box::new(SendKeys::default())),
        },
    ]);
    methods
}
