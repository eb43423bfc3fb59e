/** Results of one run of the suite, by test and by feature. */
export interface Outcome {
  readonly passed: readonly string[]
  readonly failed: readonly string[]
  /** Tests that skipped themselves or did not run. */
  readonly skipped: readonly string[]
  /** Requested features whose tests all passed, sorted. Some features have no test in this version of the suite. */
  readonly passing: readonly string[]
  /** Tests that did not pass, by feature. */
  readonly failing: Readonly<Record<string, readonly string[]>>
}

/** Core features. Every test names at least one; a failure counts against the other features that the test names. */
const core: ReadonlySet<string> = new Set(['Gateway', 'ReferenceGrant', 'HTTPRoute', 'GRPCRoute', 'TLSRoute', 'TCPRoute', 'UDPRoute'])

/**
 * @param log output of the suite with -test.v
 * @param needs features that each test needs
 * @param requested requested features
 */
export function readOutcome(log: string, needs: Readonly<Record<string, readonly string[]>>, requested: readonly string[]): Outcome {
  const results = new Map<string, string>()
  // A test of the suite is a subtest of one Go test function; its own subtests are indented further.
  for (const [, result = '', test = ''] of log.matchAll(/^ {4}--- (PASS|FAIL|SKIP): TestConformance\/([^ /]+) /gm)) results.set(test, result)
  // The suite marks tests as skipped that need a feature that was not requested.
  const due = Object.keys(needs)
    .filter((test) => (needs[test] ?? []).every((feature) => requested.includes(feature)))
    .toSorted()
  const withResult = (wanted: string): string[] => due.filter((test) => (results.get(test) ?? 'SKIP') === wanted)
  const failed = withResult('FAIL')
  const skipped = withResult('SKIP')
  const failing: Record<string, string[]> = {}
  for (const test of [...failed, ...skipped]) for (const feature of blame(needs[test] ?? [])) (failing[feature] ??= []).push(test)
  return { passed: withResult('PASS'), failed, skipped, passing: requested.filter((feature) => !(feature in failing)).toSorted(), failing }
}

/** Features that a failed test counts against: its extended features, or its core features if it needs no other. */
function blame(features: readonly string[]): readonly string[] {
  const extended = features.filter((feature) => !core.has(feature))
  return extended.length > 0 ? extended : features
}
