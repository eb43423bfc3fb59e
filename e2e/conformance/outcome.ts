/** What one run of the suite showed: every test, and every feature by the tests that need it. */
export interface Outcome {
  readonly passed: readonly string[]
  readonly failed: readonly string[]
  /** Tests that gave up on their own, or that the run did not come to. */
  readonly skipped: readonly string[]
  /** Asked for, and every test that needs it passed; sorted. Some have no test in this version of the suite. */
  readonly passing: readonly string[]
  /** Feature -> the tests that did not pass. */
  readonly failing: Readonly<Record<string, readonly string[]>>
}

/** Features that the shape of a Gateway or route needs; each test names one, and a failure speaks against what else it names. */
const core: ReadonlySet<string> = new Set(['Gateway', 'ReferenceGrant', 'HTTPRoute', 'GRPCRoute', 'TLSRoute', 'TCPRoute', 'UDPRoute'])

/**
 * @param log output of the suite with -test.v
 * @param needs test -> features that it needs
 * @param requested features that were asked for
 */
export function readOutcome(log: string, needs: Readonly<Record<string, readonly string[]>>, requested: readonly string[]): Outcome {
  const results = new Map<string, string>()
  // A test of the suite is a subtest of the one function; its own subtests are indented further.
  for (const [, result = '', test = ''] of log.matchAll(/^ {4}--- (PASS|FAIL|SKIP): TestConformance\/([^ /]+) /gm)) results.set(test, result)
  // The suite marks a test as skipped that needs a feature nobody asked for.
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

/** A test that needs an extended feature speaks against that; one that needs core features only, against those. */
function blame(features: readonly string[]): readonly string[] {
  const extended = features.filter((feature) => !core.has(feature))
  return extended.length > 0 ? extended : features
}
