import type { MessageCode } from '#api/messages/code.ts'
import type { BudgetRow } from '#api/management/budgets.ts'
import type { BackendNode, Overview, Problem } from '#api/management/overview.ts'
import type { ConfigVersions } from '#api/management/config.ts'
import type { ConfigSnapshot } from '../../config/store.ts'
import { compileRoute } from '../../route/compile.ts'
import { Slice } from '../../runtime/cooperative.ts'
import type { FamilyDump } from '../../observe/telemetry/metrics/registry.ts'
import { nameOfRef } from './graph.ts'
import { findHeldTools } from './mcp/held-tools.ts'

/** A certificate is reported this long before it expires. */
const EXPIRY_NOTICE_MS = 14 * 24 * 60 * 60 * 1000
const MAX_PROBLEMS = 200
/** Keys of budgets near their end that are listed. */
const MAX_BUDGETS = 20

interface Findings {
  readonly snapshot: ConfigSnapshot
  readonly listeners: Overview['listeners']
  readonly backends: readonly BackendNode[]
  /** `HELD_TOOLS_FAMILIES` of each thread. */
  readonly held: readonly (readonly FamilyDump[])[]
  readonly budgets: readonly BudgetRow[]
  readonly rejections: ConfigVersions['rejections']
  readonly versions: ConfigVersions['versions']
  readonly failures: readonly Error[]
  readonly notes: readonly string[]
  readonly nowMs: number
}

/** Problems of a data plane, errors first. */
export async function findProblems(findings: Findings): Promise<Problem[]> {
  const found = [
    ...rejected(findings),
    ...ports(findings),
    ...openPorts(findings),
    ...certificates(findings),
    ...(await references(findings)),
    ...evictions(findings),
    ...failedChecks(findings),
    ...heldTools(findings),
    ...budgetsNearEnd(findings),
  ]
  const rank = { error: 0, warning: 1 }
  return found.sort((a, b) => rank[a.severity] - rank[b.severity]).slice(0, MAX_PROBLEMS)
}

function report(severity: Problem['severity'], code: MessageCode, object: string | null, message: string): Problem {
  return { severity, code, message, object, pod: null }
}

/** Rejections since the last version: an applied version may have corrected earlier ones. */
function* rejected({ rejections, versions }: Findings): Generator<Problem> {
  const appliedAtMs = versions[0]?.appliedAtMs ?? 0
  for (const { timeMs, code, key, message } of rejections)
    if (timeMs >= appliedAtMs) yield report('error', code as MessageCode, 'config', key === null ? message : `${key}: ${message}`)
}

function* ports({ failures }: Findings): Generator<Problem> {
  for (const { message } of failures) yield report('error', 'PX4007', null, message)
}

function* openPorts({ notes }: Findings): Generator<Problem> {
  for (const note of notes) yield report('warning', 'PX3016', 'config', note.replace(/ \[PX\d{4}\]$/, ''))
}

function* certificates({ listeners, snapshot, nowMs }: Findings): Generator<Problem> {
  for (const { key, certificates: offered } of listeners) {
    const wanted = snapshot.listeners.get(key)?.tls?.mode === 'Terminate'
    if (wanted && offered.length === 0) yield report('error', 'PX4008', `listener ${key}`, `listener ${key} has no usable certificate: TLS handshakes fail`)
    for (const { secret, notAfterMs } of offered) {
      const date = new Date(notAfterMs).toISOString().slice(0, 10)
      if (notAfterMs <= nowMs) yield report('error', 'PX4016', `listener ${key}`, `certificate ${secret} expired on ${date}`)
      else if (notAfterMs - nowMs < EXPIRY_NOTICE_MS) yield report('warning', 'PX4016', `listener ${key}`, `certificate ${secret} expires on ${date}`)
    }
  }
}

async function references({ snapshot }: Findings): Promise<Problem[]> {
  const found: Problem[] = []
  const slice = new Slice()
  for (const route of snapshot.routes.values()) {
    if (slice.isOver) await slice.next()
    const { kind, namespace, name, ruleIndex } = route.route
    const object = `route ${kind} ${namespace}/${name}`
    for (const error of compileRoute(route).errors) found.push(report('error', 'PX4009', object, `rule ${ruleIndex}: ${error}`))
    for (const { ref } of route.backends ?? []) {
      const isMissing = ref.service === undefined ? ref.backend !== undefined && !snapshot.backends.has(ref.backend) : !snapshot.services.has(ref.service)
      if (ref.invalid !== undefined || isMissing)
        found.push(report('error', 'PX4017', object, `rule ${ruleIndex}: backend ${nameOfRef(ref)} does not resolve (${ref.invalid ?? 'not found'})`))
    }
  }
  return found
}

function* evictions({ backends }: Findings): Generator<Problem> {
  for (const { key, endpoints } of backends)
    for (const { address, evictedForMs, evictedBecause } of endpoints)
      if (evictedForMs !== null)
        yield report(
          'warning',
          'PX4010',
          `backend ${key}`,
          `endpoint ${address} of ${key} is evicted for ${Math.ceil(evictedForMs / 1000)} s more: ${evictedBecause ?? 'unhealthy'}`,
        )
}

function* failedChecks({ backends }: Findings): Generator<Problem> {
  for (const { key, endpoints } of backends)
    for (const { address, failedCheck } of endpoints)
      if (failedCheck !== null) yield report('warning', 'PX4010', `backend ${key}`, `endpoint ${address} of ${key} fails its health checks: ${failedCheck}`)
}

function* heldTools({ held, snapshot }: Findings): Generator<Problem> {
  for (const { backend, server, count } of findHeldTools(held, snapshot)) {
    const tools = count === 1 ? '1 tool of MCP server' : `${count} tools of MCP server`
    yield report(
      'warning',
      'PX4029',
      `backend ${backend}`,
      `${tools} ${server} of ${backend} ${count === 1 ? 'is' : 'are'} held until approved: proxyctl mcp diff shows the differences`,
    )
  }
}

function* budgetsNearEnd({ budgets }: Findings): Generator<Problem> {
  const near = budgets.filter(({ isNearEnd }) => isNearEnd)
  for (const { policy, budget, key, unit, window, limit, used, left, windowEndMs } of near.slice(0, MAX_BUDGETS)) {
    const whose = key === null ? '' : ` for key ${JSON.stringify(key)}`
    const state = left === 0 ? 'used up' : `${Math.floor((used / limit) * 100)} % used`
    const ends = new Date(windowEndMs).toISOString().replace(/\.\d+Z$/, 'Z')
    const text = `${limit} ${unit === 'usd' ? 'USD' : unit} per ${window}`
    yield report('warning', 'PX4021', `budget ${policy} ${budget}`, `budget "${budget}" of ${policy}, ${text}, is ${state}${whose}; the window ends ${ends}`)
  }
  if (near.length > MAX_BUDGETS) yield report('warning', 'PX4021', 'budget', `${near.length - MAX_BUDGETS} more keys are near the end of a budget`)
}
