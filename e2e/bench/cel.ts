import { CelScalar, celEnv, celFunc, isCelError, mapType, parse, plan } from '@bufbuild/cel'
import type { CelInput } from '@bufbuild/cel'
import { Environment } from '@marcbachmann/cel-js'
import { CelError, HeaderView, compile, environments, isParseError, toHost } from '#api/cel/index.ts'
import type { HeaderSource } from '#api/cel/index.ts'

// Compiles expressions once and evaluates them 100,000 times, best of nine rounds: this project's engine against other engines on npm, in one process,
// alternately. Run it: node e2e/bench/cel.ts

/** One comparison, in nanoseconds per evaluation; `--json` prints a list of them. `least` is the minimum of rival / ours. */
export interface CelRow {
  readonly name: string
  readonly engine: string
  readonly ours: number
  readonly rival: number
  readonly least: number
}

const EVALUATIONS = 100_000
const ROUNDS = 9
/** Required ratios. */
const LEAST_TO_BUFBUILD = 10
const LEAST_TO_CEL_JS = 2

const headers: readonly (readonly [string, string])[] = [
  ['host', 'api.example.com'],
  ['user-agent', 'bench/1.0'],
  ['accept', 'application/json'],
  ['authorization', 'Bearer aaaa.bbbb.cccc'],
  ['x-request-id', '0d3f1b1e-9f0b-4b77-a3c2-5f8f4c2f2b11'],
  ['x-user', 'bob'],
]
const body = Buffer.from(JSON.stringify({ model: 'small', stream: true, messages: [{ role: 'user', content: 'x'.repeat(1000) }] }))
const claims = { sub: 'alice', groups: ['dev', 'ops', 'admin'], exp: 1_900_000_000 }

const rows = [
  { name: 'header and JWT', expression: 'request.headers["x-user"] == "bob" && jwt.claims.sub.startsWith("a")' },
  { name: 'missing header', expression: 'request.headers["x-missing"] == "bob" && jwt.claims.sub.startsWith("a")' },
  { name: 'json(request.body).model', expression: 'json(request.body).model' },
]

/** Headers as in the data plane: a flat list that is scanned. */
class FlatHeaders implements HeaderSource {
  readonly raw = headers.flat()
}

type Run = () => unknown
/** Compiles an expression with one engine. */
type Engine = (expression: string) => Run

const ours: Engine = (expression) => {
  const program = compile(expression, environments.request)
  if (isParseError(program)) throw new Error(JSON.stringify(program.problems))
  const context = { request: { method: 'GET', headers: new HeaderView(new FlatHeaders()), body }, jwt: { claims } }
  return () => program.eval(context)
}

const plainContext = { request: { method: 'GET', headers: Object.fromEntries(headers), body: new Uint8Array(body) }, jwt: { claims } }

const bufbuild: Engine = (expression) => {
  const parseBody = (bytes: Uint8Array): CelInput => toMap(JSON.parse(new TextDecoder().decode(bytes))) as CelInput
  const dyn = mapType(CelScalar.STRING, CelScalar.DYN)
  const env = celEnv({ funcs: [celFunc('json', [CelScalar.BYTES], CelScalar.DYN, parseBody)], variables: { request: dyn, jwt: dyn } })
  const evaluate = plan(env, parse(expression).expr)
  const context = toMap(plainContext) as Map<string, never>
  const bindings = { request: context.get('request'), jwt: context.get('jwt') } as unknown as Parameters<typeof evaluate>[0]
  return () => evaluate(bindings)
}

/** Converts objects to maps: this engine accepts objects as messages only. */
function toMap(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toMap)
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return value
  return new Map(Object.entries(value).map(([key, member]) => [key, toMap(member)]))
}

const celJs: Engine = (expression) => {
  const env = new Environment({ unlistedVariablesAreDyn: true }).registerFunction('json(bytes): dyn', (bytes: Uint8Array) =>
    JSON.parse(new TextDecoder().decode(bytes)),
  )
  const evaluate = env.parse(expression)
  return () => {
    // This engine throws errors; the others return them.
    try {
      return evaluate(plainContext)
    } catch (thrown) {
      return thrown
    }
  }
}

/** Nanoseconds per evaluation. */
function measure(run: Run): number {
  const start = process.hrtime.bigint()
  let last: unknown
  for (let i = 0; i < EVALUATIONS; i++) last = run()
  const nanos = Number(process.hrtime.bigint() - start)
  return last === run ? NaN : nanos / EVALUATIONS
}

function show(result: unknown): string {
  return result instanceof Error || result instanceof CelError || isCelError(result) ? 'error' : JSON.stringify(toHost(result))
}

const engines: readonly (readonly [string, Engine, number])[] = [
  ['ours', ours, 1],
  ['@bufbuild/cel', bufbuild, LEAST_TO_BUFBUILD],
  ['@marcbachmann/cel-js', celJs, LEAST_TO_CEL_JS],
]
let isMissed = false
const isJson = process.argv.includes('--json')
const measured: CelRow[] = []
for (const { name, expression } of rows) {
  const runs = engines.map(([, engine]) => engine(expression))
  const results = new Set(runs.map((run) => show(run())))
  if (results.size !== 1) throw new Error(`${name}: the engines disagree: ${[...results].join(', ')}`)
  const best = runs.map(() => Infinity)
  for (let round = 0; round < ROUNDS; round++) for (const [i, run] of runs.entries()) best[i] = Math.min(best[i] ?? Infinity, measure(run))
  const [base = NaN] = best
  for (const [i, [engine, , least]] of engines.entries()) {
    const nanos = best[i] ?? NaN
    const ratio = nanos / base
    const verdict = i === 0 ? '' : `  ${ratio.toFixed(1)} x ours, bar ${least}${ratio < least ? ': MISSED' : ''}`
    isMissed ||= i > 0 && ratio < least
    if (i > 0) measured.push({ name, engine, ours: base, rival: nanos, least })
    if (!isJson) process.stdout.write(`${name.padEnd(26)} ${engine.padEnd(22)} ${nanos.toFixed(0).padStart(7)} ns${verdict}\n`)
  }
}
// This project's engine parses a body once per request, the others at every evaluation; the last row is the cost of a second policy.
if (isJson) process.stdout.write(`${JSON.stringify(measured)}\n`)
process.exitCode = isMissed && !isJson ? 1 : 0
