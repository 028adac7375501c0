//! Settings of the connector, which are read where layers are: programs that start others check them, too.

pub(crate) use hyperslab_layers::connector_settings::ConnectorSettings as Settings;
