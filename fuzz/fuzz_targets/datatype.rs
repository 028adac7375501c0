//! Datatypes as words and as JSON: read or refused, and written as they are read.
#![no_main]

use hyperslab_core::Datatype;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let _ = text.parse::<Datatype>();
    if let Ok(dtype) = serde_json::from_str::<Datatype>(text) {
        let written = serde_json::to_string(&dtype).expect("a type has a form in JSON");
        assert_eq!(serde_json::from_str::<Datatype>(&written).expect("what was written can be read"), dtype);
        let _ = (dtype.size(), dtype.to_string());
    }
});
