//! What models need to know of a stack, from the registries of formats and layers.

use hyperslab_core::{Error, Result, Stack};
use hyperslab_formats::formats;
use hyperslab_model::Configuration;

/// What of a stack decides how arrays are stored and what transfers cost. Refuses formats that there is no model of, and options
/// that make no sense. The format need not be compiled in.
///
/// ```
/// # fn main() -> hyperslab::Result<()> {
/// let configuration = hyperslab::configuration(&"async/posix(buffer=1MiB)".parse()?)?;
/// assert_eq!(configuration.layers(), ["async"]);
/// assert!(hyperslab::configuration(&"null".parse()?).is_err());
/// # Ok(())
/// # }
/// ```
pub fn configuration(stack: &Stack) -> Result<Configuration> {
    let entry = hyperslab_formats::format(&stack.format.name)?;
    let (Some(storage), Some(cost)) = (entry.storage, entry.cost) else {
        let known: Vec<&str> = formats().iter().filter(|entry| entry.cost.is_some()).map(|entry| entry.name).collect();
        return Err(Error::unsupported("model stack", format!("there is no model of {}", entry.name))
            .hint(format!("use a stack on one of {}", known.join(", "))));
    };
    let layers = stack.layers.iter().map(|layer| Ok((layer.name.clone(), hyperslab_layers::effect(layer)?)));
    Ok(Configuration::new(storage(&stack.format)?, cost(&stack.format)?, layers.collect::<Result<_>>()?))
}
