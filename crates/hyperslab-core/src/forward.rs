//! Forwarding of trait methods, written once for all layers.

/// Implements methods of [`Format`](crate::Format), [`Container`](crate::Container), [`Hierarchy`](crate::Hierarchy),
/// [`Array`](crate::Array) or [`Telemetry`](crate::Telemetry) by the same methods of what is wrapped. `open`, `create` and
/// `array` have no place here, since a layer wraps what they return.
///
/// ```
/// use hyperslab_core::{Durability, Result};
///
/// # trait Close { fn close(&self) -> Result<()>; fn flush(&self, how: Durability) -> Result<()>; }
/// struct Counted<T> {
///     inner: T,
///     flushes: std::cell::Cell<u32>,
/// }
///
/// impl<T: Close> Close for Counted<T> {
///     hyperslab_core::forward!(self, self.inner, [close]);
///
///     fn flush(&self, how: Durability) -> Result<()> {
///         self.flushes.set(self.flushes.get() + 1);
///         self.inner.flush(how)
///     }
/// }
/// ```
///
/// Above the implementation of a layer stands `#[deny(clippy::missing_trait_methods)]`: a method that is added to a trait must
/// be forwarded or decided by every layer.
#[macro_export]
macro_rules! forward {
    ($self:ident, $inner:expr, [$($method:ident),+ $(,)?]) => {
        $($crate::forward!(@$method $self, $inner);)+
    };
    (@name $self:ident, $inner:expr) => {
        fn name(&$self) -> &'static str {
            $inner.name()
        }
    };
    (@caps $self:ident, $inner:expr) => {
        fn caps(&$self) -> $crate::Caps {
            $inner.caps()
        }
    };
    (@extension $self:ident, $inner:expr) => {
        fn extension(&$self) -> &'static str {
            $inner.extension()
        }
    };
    (@exists $self:ident, $inner:expr) => {
        fn exists(&$self, path: &std::path::Path) -> $crate::Result<bool> {
            $inner.exists(path)
        }
    };
    (@remove $self:ident, $inner:expr) => {
        fn remove(&$self, path: &std::path::Path) -> $crate::Result<()> {
            $inner.remove(path)
        }
    };
    (@files $self:ident, $inner:expr) => {
        fn files(&$self, path: &std::path::Path) -> $crate::Result<Vec<std::path::PathBuf>> {
            $inner.files(path)
        }
    };
    (@telemetry $self:ident, $inner:expr) => {
        fn telemetry(&$self) -> &dyn $crate::Telemetry {
            $inner.telemetry()
        }
    };
    (@write_back $self:ident, $inner:expr) => {
        fn write_back(&$self) -> $crate::Result<()> {
            $inner.write_back()
        }
    };
    (@flush $self:ident, $inner:expr) => {
        fn flush(&$self, how: $crate::Durability) -> $crate::Result<()> {
            $inner.flush(how)
        }
    };
    (@close $self:ident, $inner:expr) => {
        fn close(&$self) -> $crate::Result<()> {
            $inner.close()
        }
    };
    (@arrays $self:ident, $inner:expr) => {
        fn arrays(&$self) -> $crate::Result<Vec<String>> {
            $inner.arrays()
        }
    };
    (@groups $self:ident, $inner:expr) => {
        fn groups(&$self) -> $crate::Result<Vec<String>> {
            $inner.groups()
        }
    };
    (@create_group $self:ident, $inner:expr) => {
        fn create_group(&$self, name: &str) -> $crate::Result<()> {
            $inner.create_group(name)
        }
    };
    (@set_attribute $self:ident, $inner:expr) => {
        fn set_attribute(&$self, object: &str, name: &str, value: &$crate::Attribute) -> $crate::Result<()> {
            $inner.set_attribute(object, name, value)
        }
    };
    (@attribute $self:ident, $inner:expr) => {
        fn attribute(&$self, object: &str, name: &str) -> $crate::Result<$crate::Attribute> {
            $inner.attribute(object, name)
        }
    };
    (@attributes $self:ident, $inner:expr) => {
        fn attributes(&$self, object: &str) -> $crate::Result<Vec<String>> {
            $inner.attributes(object)
        }
    };
    (@spec $self:ident, $inner:expr) => {
        fn spec(&$self) -> $crate::Result<$crate::ArraySpec> {
            $inner.spec()
        }
    };
    (@write $self:ident, $inner:expr) => {
        fn write(&$self, selection: &$crate::Selection, memory: $crate::MemoryView<'_>, transfer: $crate::TransferMode) -> $crate::Result<()> {
            $inner.write(selection, memory, transfer)
        }
    };
    (@read $self:ident, $inner:expr) => {
        fn read(&$self, selection: &$crate::Selection, memory: $crate::MemoryViewMut<'_>, transfer: $crate::TransferMode) -> $crate::Result<()> {
            $inner.read(selection, memory, transfer)
        }
    };
    (@write_strings $self:ident, $inner:expr) => {
        fn write_strings(
            &$self,
            selection: &$crate::Selection,
            strings: &$crate::Strings,
            transfer: $crate::TransferMode,
        ) -> $crate::Result<()> {
            $inner.write_strings(selection, strings, transfer)
        }
    };
    (@read_strings $self:ident, $inner:expr) => {
        fn read_strings(
            &$self,
            selection: &$crate::Selection,
            transfer: $crate::TransferMode,
        ) -> $crate::Result<$crate::Strings> {
            $inner.read_strings(selection, transfer)
        }
    };
    (@write_many $self:ident, $inner:expr) => {
        fn write_many(&$self, parts: &[(&$crate::Selection, $crate::MemoryView<'_>)], transfer: $crate::TransferMode) -> $crate::Result<()> {
            $inner.write_many(parts, transfer)
        }
    };
    (@submit_write $self:ident, $inner:expr) => {
        fn submit_write(&$self, selection: &$crate::Selection, data: $crate::Bytes, layout: &$crate::MemoryLayout, transfer: $crate::TransferMode) -> $crate::Result<$crate::Request> {
            $inner.submit_write(selection, data, layout, transfer)
        }
    };
    (@allows_background_io $self:ident, $inner:expr) => {
        fn allows_background_io(&$self) -> bool {
            $inner.allows_background_io()
        }
    };
    (@object $self:ident, $inner:expr) => {
        fn object(&$self) -> Option<u64> {
            $inner.object()
        }
    };
    (@resize $self:ident, $inner:expr) => {
        fn resize(&$self, shape: &[u64]) -> $crate::Result<()> {
            $inner.resize(shape)
        }
    };
    (@diagnostics $self:ident, $inner:expr) => {
        fn diagnostics(&$self) -> Vec<String> {
            $inner.diagnostics()
        }
    };
    (@background $self:ident, $inner:expr) => {
        fn background(&$self) -> $crate::BackgroundStats {
            $inner.background()
        }
    };
    (@explain $self:ident, $inner:expr) => {
        fn explain(&$self, selection: &$crate::Selection, layout: &$crate::MemoryLayout, writes: bool) -> $crate::Result<Option<String>> {
            $inner.explain(selection, layout, writes)
        }
    };
    (@prefetch $self:ident, $inner:expr) => {
        fn prefetch(&$self, selection: &$crate::Selection) {
            $inner.prefetch(selection);
        }
    };
}
