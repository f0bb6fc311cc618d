"""The probe engine: a probe and a kernel's PTX become probed PTX, assembled and served to the hook."""
