import { appendFile, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { parse, stringify } from 'yaml'
import { readOutcome, type Outcome } from './outcome.ts'

const USAGE = `usage: node e2e/conformance/summary.ts --log FILE --list FILE --report FILE --claimed FILE [--keep]

  --log FILE      output of the suite (-test.v)
  --list FILE     features that each test needs (TestList)
  --report FILE   report of the suite
  --claimed FILE  supportedFeatures of the GatewayClass, separated by blanks
  --keep          update report.yaml and results.yaml of this directory
`

interface Side {
  readonly statistics: Readonly<Record<'Passed' | 'Failed' | 'Skipped', number>>
}
interface Report {
  readonly profiles: readonly { readonly name: string; readonly core?: Side; readonly extended?: Side }[]
}

/** Minimum number of passed extended HTTP tests; all core tests must pass. */
const EXTENDED_HTTP = 45
const FOLDER = import.meta.dirname

const { values } = parseArgs({
  options: {
    log: { type: 'string' },
    list: { type: 'string' },
    report: { type: 'string' },
    claimed: { type: 'string' },
    keep: { type: 'boolean', default: false },
  },
})
if (!values.log || !values.list || !values.report || !values.claimed) {
  process.stderr.write(USAGE)
  process.exit(2)
}
const text = (path: string): Promise<string> => readFile(path, 'utf8')
const requested = (await text(join(FOLDER, 'features.txt'))).trimEnd().split('\n')
const outcome = readOutcome(await text(values.log), JSON.parse(await text(values.list)) as Record<string, string[]>, requested)
const report = (parse(await text(values.report).catch(() => '')) ?? { profiles: [] }) as Report
const claimed = (await text(values.claimed)).split(/\s+/).filter(Boolean)
if (values.keep) await keep(report, outcome)

print(report, outcome)
const shortfalls = findProblems(report, outcome, claimed)
for (const problem of shortfalls) process.stdout.write(`${problem}\n`)
process.stdout.write(`${outcome.passed.length} passed, ${outcome.failed.length} failed\n`)
// For .ci/run, like the Jest reporter.
const totals = process.env['JEST_TOTALS']
if (totals) await appendFile(totals, `${outcome.passed.length} ${outcome.failed.length}\n`)
process.exit(shortfalls.length > 0 ? 1 : 0)

async function keep(official: Report, { passed, failed, skipped, passing, failing }: Outcome): Promise<void> {
  // The suite writes profiles in no defined order.
  const profiles = official.profiles.toSorted((a, b) => (a.name < b.name ? -1 : 1))
  await writeFile(join(FOLDER, 'report.yaml'), stringify({ ...official, profiles }))
  await writeFile(join(FOLDER, 'results.yaml'), stringify({ passing, failing, failed, skipped, passed }))
}

function print({ profiles }: Report, { failing }: Outcome): void {
  const cell = (side: Side | undefined): string => {
    const { Passed = 0, Failed = 0, Skipped = 0 } = side?.statistics ?? {}
    return `${Passed} of ${Passed + Failed + Skipped}`.padEnd(12)
  }
  process.stdout.write(`${'profile'.padEnd(16)}${'core'.padEnd(12)}extended\n`)
  for (const { name, core, extended } of profiles) process.stdout.write(`${name.padEnd(16)}${cell(core)}${cell(extended)}\n`)
  for (const [feature, tests] of Object.entries(failing)) process.stdout.write(`not passing: ${feature} (${tests.join(', ')})\n`)
}

/** Deviations from the required results or from the features that the GatewayClass claims. */
function findProblems({ profiles }: Report, result: Outcome, claims: readonly string[]): string[] {
  const problems: string[] = []
  const { size } = new Set(profiles.map(({ name }) => name))
  if (size < 4) problems.push(`the report has ${size} profiles; 4 were requested`)
  for (const { name, core, extended } of profiles) {
    if (!core || core.statistics.Passed === 0 || core.statistics.Failed + core.statistics.Skipped > 0) problems.push(`${name}: every core test must pass`)
    if (name === 'GATEWAY-HTTP' && (extended?.statistics.Passed ?? 0) < EXTENDED_HTTP)
      problems.push(`${name}: at least ${EXTENDED_HTTP} extended tests must pass`)
  }
  const unfounded = claims.filter((feature) => !result.passing.includes(feature))
  const silent = result.passing.filter((feature) => !claims.includes(feature))
  if (unfounded.length > 0)
    problems.push(`the GatewayClass claims what does not pass: ${unfounded.join(', ')}; take it out of operator/translate/gateway/gateway-class.ts`)
  if (silent.length > 0)
    problems.push(`the GatewayClass does not name what passes: ${silent.join(', ')}; add it to operator/translate/gateway/gateway-class.ts`)
  return problems
}
