import fc from 'fast-check'

// A fixed seed, so that every run tests the same cases. PROPERTY_SEED=<integer> selects others.
fc.configureGlobal({ seed: Number(process.env['PROPERTY_SEED'] ?? 1) })

/** fast-check, for tests, with a fixed seed. */
export { fc }
