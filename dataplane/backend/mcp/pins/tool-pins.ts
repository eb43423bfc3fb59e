import { createHash } from 'node:crypto'
import type { ResolvedMcpToolPins } from '#gen/config/types.ts'
import { digestTool } from '#api/mcp-pins/digest.ts'
import { findSuspicions, skeletonOf, type Suspicion } from '#api/mcp-pins/findings.ts'
import { changedParts, parsePins, type Pins, type ToolPart } from '#api/mcp-pins/pins.ts'
import { METRIC_PREFIX } from '#api/names.ts'
import type { PolicyState } from '../../../policy/state.ts'
import type { Cooperative } from '../../../runtime/cooperative.ts'
import { defineMetrics } from '../../../observe/telemetry/metrics/area.ts'
import type { JsonObject } from '../message/json.ts'

/** What is reported about a tool that is not as it was approved. */
type Finding = 'Changed' | 'New' | 'LooksAlike' | Suspicion

/** The state of one version of a tool. */
interface Verdict {
  /** Digest of the definition. */
  readonly digest: string
  readonly findings: readonly Finding[]
  readonly parts: readonly ToolPart[]
  /** Name of the pinned tool that the name looks like. */
  readonly twin: string | undefined
}

interface Seen extends Verdict {
  readonly atMs: number
}

/** What is known of the tools of one target. */
interface TargetTools {
  /** By name, of at most MAX_TOOLS. */
  readonly tools: Map<string, Seen>
  /** When each tool that blocks its target was listed last, by name. Kept for all: forgetting `tools` must not offer the others. */
  readonly blocking: Map<string, number>
}

/** How long the state of a tool is used for calls before the list of its server is read again, in milliseconds. */
export const FRESH_MS = 60_000
const TOOLS_PER_STEP = 16
/** Tools of one target whose states are kept. */
const MAX_TOOLS = 4096
const MAX_TARGETS = 1024
/** Lines in the log about one target in FRESH_MS. */
const MAX_LINES = 100
/** Characters of a name in the log. */
const MAX_NAME = 128

const findingMetrics = defineMetrics((registry) => {
  const found = registry.counter(`${METRIC_PREFIX}mcp_tool_findings_total`, 'Versions of MCP tools that are not as they were approved.', ['server', 'finding'])
  return (server: string, finding: Finding): void => void found.series(server, finding).value++
})

const heldMetrics = defineMetrics((registry) =>
  registry.gauge(`${METRIC_PREFIX}mcp_tools_held`, 'MCP tools that clients do not see until they are approved.', ['backend', 'server'], 'max'),
)

/** Compares the tools of the targets of one backend with their pins (mcp.md §4.9). */
export class ToolPins {
  readonly action: ResolvedMcpToolPins['action']
  readonly #source: ResolvedMcpToolPins
  readonly #backend: string
  readonly #pins: Pins
  readonly #skeletons: ReadonlyMap<string, readonly { readonly target: string; readonly name: string }[]>
  readonly #state: Pick<PolicyState, 'registry' | 'log' | 'monotonicMs'>
  readonly #seen = new Map<string, TargetTools>()
  readonly #lines = new Map<string, { count: number; sinceMs: number }>()
  #isClosed = false

  /** `backend`: key of the backend. */
  constructor(source: ResolvedMcpToolPins, backend: string, state: Pick<PolicyState, 'registry' | 'log' | 'monotonicMs'>) {
    this.#source = source
    this.#backend = backend
    this.#state = state
    this.action = source.action
    const pins = parsePins(source.pins ?? '')
    // Without usable pins, no tool is approved.
    this.#pins = typeof pins === 'string' || source.invalid !== undefined ? new Map() : pins
    const skeletons = new Map<string, { target: string; name: string }[]>()
    for (const [target, tools] of this.#pins)
      for (const name of tools.keys()) {
        const skeleton = skeletonOf(name)
        const known = skeletons.get(skeleton)
        if (known === undefined) skeletons.set(skeleton, [{ target, name }])
        else known.push({ target, name })
      }
    this.#skeletons = skeletons
  }

  /** Whether a version of the config has the same pins, so that the states stay valid. */
  isOf({ action, pins, invalid }: ResolvedMcpToolPins): boolean {
    return this.#source.action === action && this.#source.pins === pins && this.#source.invalid === invalid
  }

  /** Records the tools that a target listed, all pages together unless the action is `Audit`; returns those that clients may see. */
  *review(target: string, tools: readonly JsonObject[]): Cooperative<readonly JsonObject[]> {
    const atMs = this.#state.monotonicMs()
    const { tools: seen, blocking } = this.#seenOf(target)
    const verdicts: Verdict[] = []
    for (const [index, tool] of tools.entries()) {
      if (index % TOOLS_PER_STEP === TOOLS_PER_STEP - 1) yield
      const name = String(tool['name'])
      const digest = createHash('sha256').update(JSON.stringify(tool)).digest('base64')
      const known = seen.get(name)
      const verdict = known?.digest === digest ? known : this.#judge(target, name, tool, digest)
      if (verdict !== known) this.#report(target, name, verdict)
      if (seen.size >= MAX_TOOLS && known === undefined) seen.clear()
      seen.set(name, { ...verdict, atMs })
      if (isBlocking(verdict)) blocking.set(name, atMs)
      else blocking.delete(name)
      verdicts.push(verdict)
    }
    if (this.action === 'Audit') return tools
    const isBlocked = this.#isBlocked(blocking, atMs)
    const offered = isBlocked ? [] : tools.filter((_, index) => verdicts[index] !== undefined && !isHeld(verdicts[index]))
    this.#setHeld(target, tools.length - offered.length)
    return offered
  }

  /** Other pins replace these: their tools are not held any more. */
  close(): void {
    for (const target of this.#seen.keys()) this.#setHeld(target, 0)
    this.#isClosed = true
  }

  #setHeld(target: string, count: number): void {
    if (!this.#isClosed && this.action !== 'Audit') heldMetrics(this.#state.registry).series(this.#backend, target).value = count
  }

  /** Whether clients may call a tool; undefined if the list of its server must be read first. */
  isOffered(target: string, name: string): boolean | undefined {
    if (this.action === 'Audit') return true
    const nowMs = this.#state.monotonicMs()
    const { tools, blocking } = this.#seenOf(target)
    if (this.#isBlocked(blocking, nowMs)) return false
    const known = tools.get(name)
    return known === undefined || nowMs - known.atMs > FRESH_MS ? undefined : !isHeld(known)
  }

  /** Why clients do not see a tool that its server listed, for traces. */
  explain(target: string, name: string): string {
    const known = this.#seenOf(target).tools.get(name)
    if (known === undefined || !isHeld(known))
      return 'the target changed or imitates an approved tool, so that none of its tools is offered (toolPins, action Block)'
    const changed = known.parts.length === 0 ? '' : ` (${known.parts.join(', ')})`
    return `toolPins hold it until it is approved: ${known.findings.join(', ')}${changed}`
  }

  #seenOf(target: string): TargetTools {
    let seen = this.#seen.get(target)
    if (seen === undefined) {
      if (this.#seen.size >= MAX_TARGETS) this.#seen.clear()
      this.#seen.set(target, (seen = { tools: new Map(), blocking: new Map() }))
    }
    return seen
  }

  /** With `Block`, a target that changed an approved tool, or imitates one, offers none. */
  #isBlocked(blocking: Map<string, number>, nowMs: number): boolean {
    for (const [name, atMs] of blocking) if (nowMs - atMs > FRESH_MS) blocking.delete(name)
    return this.action === 'Block' && blocking.size > 0
  }

  #judge(target: string, name: string, tool: JsonObject, digest: string): Verdict {
    const pinned = this.#pins.get(target)?.get(name)
    const parts = pinned === undefined ? [] : changedParts(pinned, digestTool(tool))
    // An approved tool has been looked at.
    if (pinned !== undefined && parts.length === 0) return { digest, findings: [], parts, twin: undefined }
    const twin = pinned === undefined ? this.#twinOf(name) : undefined
    const findings: Finding[] = [pinned === undefined ? 'New' : 'Changed', ...(twin === undefined ? [] : ['LooksAlike' as const]), ...findSuspicions(tool)]
    return { digest, findings, parts, twin }
  }

  /** A pinned tool with another name that looks the same. Servers may have tools of one name: prefixes distinguish them. */
  #twinOf(name: string): string | undefined {
    const twin = this.#skeletons.get(skeletonOf(name))?.find((one) => one.name !== name)
    return twin && `${twin.name} of ${twin.target}`
  }

  /** Whether the log has too many lines about a target: its server changes tools with each list. */
  #isFlood(target: string): boolean {
    const nowMs = this.#state.monotonicMs()
    let lines = this.#lines.get(target)
    if (lines === undefined || nowMs - lines.sinceMs > FRESH_MS) {
      if (this.#lines.size >= MAX_TARGETS) this.#lines.clear()
      this.#lines.set(target, (lines = { count: 0, sinceMs: nowMs }))
    }
    return ++lines.count > MAX_LINES
  }

  #report(target: string, name: string, { findings, parts, twin }: Verdict): void {
    if (findings.length === 0) return
    const { registry, log } = this.#state
    const count = findingMetrics(registry)
    for (const finding of findings) count(target, finding)
    if (this.#isFlood(target)) return
    log?.warn('an MCP tool is not as it was approved', {
      code: 'PX4029',
      'mcp.target': target,
      'gen_ai.tool.name': name.slice(0, MAX_NAME),
      findings: findings.join(','),
      ...(parts.length > 0 && { changed: parts.join(',') }),
      ...(twin !== undefined && { looksLike: twin }),
      action: this.action,
    })
  }
}

const isBlocking = ({ findings }: Verdict): boolean => findings.includes('Changed') || findings.includes('LooksAlike')

const isHeld = ({ findings }: Pick<Verdict, 'findings'>): boolean => findings.includes('New') || findings.includes('Changed')
