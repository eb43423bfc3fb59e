import { readFile, stat } from 'node:fs/promises'
import { REDACTED } from '#api/names.ts'
import { dumpSectionOf, dumpSections, withRealNames } from '../../../dataplane/config/real-names.ts'
import { adminAt, askJson, openAdmin, tokenOf } from './admin.ts'
import { CommandError, UsageError, type Output } from '../output.ts'
import type { Command, Invocation } from '../types.ts'

/** Kind of message -> key -> message, as `/config_dump` shows them: secrets redacted. */
type Dump = Readonly<Record<string, Readonly<Record<string, unknown>>>>

/** Prints the config of a data plane. */
export const runConfigDump: Command = async (invocation) => {
  if (invocation.args.length > 0) throw new UsageError('config dump takes no arguments')
  const config = await askJson<object>(await openAdmin(invocation), '/config_dump')
  invocation.output.print(config, () => [JSON.stringify(config, null, 2)])
  return 0
}

/** Compares two configs. Resolves with 1 if they differ, as diff(1) does. */
export const runConfigDiff: Command = async (invocation) => {
  const [from, to, ...more] = invocation.args
  if (from === undefined || more.length > 0) throw new UsageError('config diff takes FROM [TO]')
  return diff(invocation, from, to)
}

interface Difference {
  readonly kind: string
  readonly key: string
  readonly from?: unknown
  readonly to?: unknown
}

async function diff(invocation: Invocation, from: string, to: string | undefined): Promise<number> {
  const [left, right] = [
    await read(from, invocation),
    to === undefined ? { dump: keepMessages(await askJson(await openAdmin(invocation), '/config_dump')) } : await read(to, invocation),
  ]
  const differences = (left.byGateway === undefined) === (right.byGateway === undefined) ? compare(left.dump, right.dump) : compareWithManifests(left, right)
  invocation.output.print({ differences }, () =>
    differences.length === 0 ? ['no difference'] : differences.flatMap((each) => describe(each, invocation.output)),
  )
  return differences.length === 0 ? 0 : 1
}

/** One side of a comparison. `byGateway` is set for manifests, with the config of each Gateway by `<namespace>/<name>`. */
interface Side {
  readonly dump: Dump
  readonly byGateway?: ReadonlyMap<string, Dump>
}

/** Reads a dump from its file, the address of an admin endpoint, or a directory of manifests, whose objects without namespace are in that of the options. */
async function read(source: string, { options: { namespace }, env }: Invocation): Promise<Side> {
  const info = await stat(source).catch(() => undefined)
  if (info?.isDirectory() === true) return fromManifests(source, namespace)
  if (info !== undefined) return { dump: keepMessages(parseDump(source, await readFile(source, 'utf8'))) }
  if (/:\d+$/.test(source)) return { dump: keepMessages(await askJson(adminAt(source, tokenOf(env)), '/config_dump')) }
  throw new UsageError(`${source}: no such file or directory, and not host:port`)
}

function parseDump(file: string, text: string): object {
  try {
    const parsed: unknown = JSON.parse(text)
    if (typeof parsed === 'object' && parsed !== null) return parsed
  } catch {
    // Reported below.
  }
  throw new CommandError('PX6009', `${file}: not a dump: proxyctl config dump writes one`)
}

async function fromManifests(directory: string, namespace: string | undefined): Promise<Side> {
  // Loaded on demand: the translation is large.
  const { readManifests } = await import('../files/manifests.ts')
  const { translation } = await readManifests(directory, namespace)
  const byGateway = new Map(
    [...translation.gateways].map(([name, messages]) => {
      const kinds: Record<string, Record<string, unknown>> = {}
      for (const { kind, key, message } of messages) (kinds[dumpSectionOf(kind)] ??= {})[key] = message
      return [name, keepMessages(kinds)]
    }),
  )
  return { dump: mergeDumps([...byGateway.values()]), byGateway }
}

/** Not config, or made from the rest of it. */
const derived: ReadonlySet<string> = new Set(['config', 'version', 'workloads'])

/** Secrets are redacted in dumps: only their keys can be compared. Dumps of older versions have neutral names. */
function keepMessages(dumped: object): Dump {
  const kept: Record<string, Record<string, unknown>> = {}
  for (const [kind, messages] of Object.entries(dumped)) {
    if (derived.has(kind) || typeof messages !== 'object' || messages === null) continue
    const byKey: [string, unknown][] = Array.isArray(messages)
      ? messages.map((message: { key?: string }) => [message.key ?? '', message])
      : Object.entries(messages as Record<string, unknown>)
    const of = dumpSections.get(kind)
    kept[kind] = Object.fromEntries(
      byKey.map(([key, message]) => [key, kind === 'secrets' ? REDACTED : of === undefined ? message : withRealNames(of, message)]),
    )
  }
  return kept
}

/**
 * Compares manifests with the dump of a running data plane. Fields that the cluster adds are ignored: creation times, endpoints, and key sets that
 * the operator fetched.
 */
function compareWithManifests(left: Side, right: Side): Difference[] {
  const running = left.byGateway ? right : left
  const names = new Set(Object.values(running.dump['listeners'] ?? {}).map(gatewayOf))
  const strip = ({ dump: all, byGateway }: Side): Dump => {
    // A data plane has the config of one Gateway, manifests may have several.
    const own = byGateway && [...byGateway].flatMap(([name, config]) => (names.has(name) ? [config] : []))
    return withoutClusterFields(own === undefined || own.length === 0 ? all : mergeDumps(own)) as Dump
  }
  return compare(strip(left), strip(right))
}

function gatewayOf(listener: unknown): string {
  const { gateway } = listener as { gateway?: { namespace?: string; name?: string } }
  return `${gateway?.namespace ?? ''}/${gateway?.name ?? ''}`
}

function mergeDumps(dumps: readonly Dump[]): Dump {
  const merged: Record<string, Record<string, unknown>> = {}
  for (const each of dumps) for (const [kind, messages] of Object.entries(each)) merged[kind] = { ...merged[kind], ...messages }
  return merged
}

const clusterFields: ReadonlySet<string> = new Set(['creationTimestamp', 'endpoints'])

function withoutClusterFields(value: unknown, field = ''): unknown {
  if (Array.isArray(value)) return value.map((item) => withoutClusterFields(item))
  if (typeof value !== 'object' || value === null) return value
  const kept = Object.entries(value).filter(([name]) => !clusterFields.has(name) && !(field === 'remote' && (name === 'inline' || name === 'invalid')))
  return Object.fromEntries(kept.map(([name, inner]) => [name, withoutClusterFields(inner, name)]))
}

function compare(left: Dump, right: Dump): Difference[] {
  const differences: Difference[] = []
  for (const kind of [...new Set([...Object.keys(left), ...Object.keys(right)])].sort()) {
    const [before = {}, after = {}] = [left[kind], right[kind]]
    for (const key of [...new Set([...Object.keys(before), ...Object.keys(after)])].sort())
      if (!isSame(before[key], after[key]))
        differences.push({ kind, key, ...(key in before && { from: before[key] }), ...(key in after && { to: after[key] }) })
  }
  return differences
}

/** A redacted value of a dump can have any type. */
function isSame(a: unknown, b: unknown): boolean {
  if (a === REDACTED || b === REDACTED) return a !== undefined && b !== undefined
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return a === b
  const [left, right] = [a as Record<string, unknown>, b as Record<string, unknown>]
  return Object.keys(left).length === Object.keys(right).length && Object.keys(left).every((key) => key in right && isSame(left[key], right[key]))
}

/** JSON with sorted keys, so that the order of fields is no difference. */
function canonical(value: unknown): string {
  return (
    JSON.stringify(value, (_, inner: unknown) =>
      typeof inner === 'object' && inner !== null && !Array.isArray(inner)
        ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
        : inner,
    ) ?? ''
  )
}

function describe({ kind, key, ...sides }: Difference, output: Output): string[] {
  return [
    `${kind} ${key}`,
    ...('from' in sides ? [output.paint('red', `- ${canonical(sides.from)}`)] : []),
    ...('to' in sides ? [output.paint('green', `+ ${canonical(sides.to)}`)] : []),
  ]
}

/** Shows or sets the log level of a data plane. */
export const runLog: Command = async (invocation) => {
  const [level, ...rest] = invocation.args
  if (rest.length > 0) throw new UsageError('log level takes at most one level, such as debug or routing=debug,upstream=trace')
  const admin = await openAdmin(invocation)
  const { status, body } = await admin.ask('POST', level === undefined ? '/logging' : `/logging?level=${encodeURIComponent(level)}`)
  if (status !== 200) throw new CommandError('PX6004', `${admin.name}: ${body.trim()}`)
  const current = body.trim().replace(/^current log level is /, '')
  invocation.output.print({ level: current }, () => [current])
  return 0
}
