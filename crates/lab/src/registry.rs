//! Registry of methods by name.
//!
//! A crate with more systems offers its own list of [`Method`]s and [`MethodRegistry::extend`]s the
//! standard one:
//!
//! ```
//! use ucl_lab::{Method, MethodRegistry, systems};
//!
//! let mut registry = MethodRegistry::standard();
//! registry.extend([Method {
//!     name: "cm-again",
//!     about: "Count-Min under another name",
//!     reference: "Cormode and Muthukrishnan, 2005",
//!     baseline: true,
//!     variant: false,
//!     build: |request| Ok(Box::new(systems::Zoo::new("cm", request)?)),
//! }]);
//! assert!(registry.find("cm-again").is_ok());
//! let error = registry.find("mc").unwrap_err().to_string();
//! assert!(error.starts_with("there is no method 'mc'; there are ucl-learned, "));
//! ```

use crate::system::{Request, System, SystemError};
use crate::systems;

/// Function that builds a system for a budget.
pub type Build = fn(&Request<'_>) -> Result<Box<dyn System>, SystemError>;

/// Method that can be measured.
#[derive(Clone, Copy, Debug)]
pub struct Method {
    /// Name on the command line and in results.
    pub name: &'static str,
    /// Description in one line.
    pub about: &'static str,
    /// Publication that describes the method.
    pub reference: &'static str,
    /// True if the method is a baseline, which is not part of `all`.
    pub baseline: bool,
    /// True if the method is a variant of another one, which is not part of `all`.
    pub variant: bool,
    /// Function that builds the method.
    pub build: Build,
}

/// Methods in the order in which they are listed.
#[derive(Clone, Debug, Default)]
pub struct MethodRegistry {
    methods: Vec<Method>,
}

impl MethodRegistry {
    /// Returns the methods of this crate.
    pub fn standard() -> Self {
        Self { methods: systems::methods() }
    }

    /// Adds methods. A method with a known name replaces the earlier one.
    pub fn extend(&mut self, methods: impl IntoIterator<Item = Method>) {
        for method in methods {
            match self.methods.iter_mut().find(|known| known.name == method.name) {
                Some(known) => *known = method,
                None => self.methods.push(method),
            }
        }
    }

    /// Returns all methods.
    pub fn methods(&self) -> &[Method] {
        &self.methods
    }

    /// Returns the method with this name.
    pub fn find(&self, name: &str) -> Result<&Method, UnknownMethod> {
        self.methods.iter().find(|method| method.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.methods.iter().map(|method| method.name).collect();
            UnknownMethod { given: name.to_owned(), known: names.join(", ") }
        })
    }

    /// Returns the methods with these names, in this order, each once. `all` stands for all methods
    /// except baselines and variants.
    pub fn select<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Result<Vec<&Method>, UnknownMethod> {
        let mut selected: Vec<&Method> = Vec::new();
        for name in names {
            let found: Vec<&Method> = match name {
                "all" => self.methods.iter().filter(|method| !method.baseline && !method.variant).collect(),
                name => vec![self.find(name)?],
            };
            for method in found {
                if selected.iter().all(|known| known.name != method.name) {
                    selected.push(method);
                }
            }
        }
        Ok(selected)
    }
}

/// Error of a name that no method has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no method '{given}'; there are {known}, and 'all'")]
pub struct UnknownMethod {
    given: String,
    known: String,
}
