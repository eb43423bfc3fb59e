import fc from 'fast-check'

// The same cases in every run: what somebody's change breaks must not show in another's. PROPERTY_SEED=<any integer> tries others.
fc.configureGlobal({ seed: Number(process.env['PROPERTY_SEED'] ?? 1) })

/** fast-check, for tests, with a fixed seed. */
export { fc }
