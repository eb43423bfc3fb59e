import { createHash } from 'node:crypto'
import { scriptStores } from '../../runtime/value-store.ts'
import type { Policy as ConfigPolicy, Plugin } from '#gen/config/types.ts'
import { parseTimeout } from '#api/duration.ts'
import type { Logger } from '../../observe/telemetry/log.ts'
import { OVERFLOW_LABEL } from '../../observe/telemetry/metrics/registry.ts'
import { KeyValueStore, type KeyValueCall, type KeyValueResult } from '../../runtime/key-value.ts'
import type { PolicyState } from '../state.ts'
import type { MetricSample } from './guest/messages.ts'
import { pluginMetrics } from './metrics.ts'
import { Fetcher } from './fetch.ts'
import { InProcessPlugin } from './in-process.ts'
import type { DirectPlugin } from './direct.ts'
import { PluginError } from './plugin-error.ts'
import type { PluginRunner } from './runner.ts'
import { readSecrets, redact, type PluginSecrets } from './secrets.ts'
import type { PluginServices } from './guest/services.ts'
import { runRemote } from './remote-values.ts'
import { PluginThread, type ThreadOptions } from './thread.ts'
import { startProcess } from './process-host.ts'
import { startWorker } from './worker-host.ts'

/** A plugin that this thread could not load. */
export interface RefusedPlugin {
  /** `<namespace>/<policy>/<plugin>`. */
  readonly plugin: string
  /** With file, line and column if it is an error of the source. */
  readonly problem: string
}

const DEFAULT_TIMEOUT_MS = 1000
const DEFAULT_MEMORY_MB = 64
/** Time for which requests wait for a new version while an old one could serve them. */
const SWAP_MS = 1000
/** A thread that has served nothing for this long ends; the next request starts it again. */
const IDLE_MS = 300_000
/** The same for a plugin that the config no longer has: requests that started before can still start it. */
const REMOVED_IDLE_MS = 1000
const MAX_DELAY_MS = 10_000
/** Longest time until a plugin that cannot be loaded is tried again without a request. */
const MAX_RETRY_MS = 60_000
const MAX_LINES_PER_SECOND = 20
/** Digits of a digest that name a version. */
const VERSION_DIGITS = 12
/** Series that one plugin may have. */
const MAX_SERIES = 200

/** One version of source, config, limits and isolation. Starts with the first request, and again when it has ended. */
class Version {
  readonly #plugin: Plugin
  readonly #slot: PluginSlot
  readonly #denied: string | undefined
  readonly secrets: PluginSecrets
  /** Start of the digest of the source. */
  readonly id: string
  #thread: PluginRunner | undefined
  /** Threads that finish their calls. */
  readonly #retired = new Set<PluginRunner>()
  #isUsed = false
  #isLoaded = false
  #failures = 0
  #startableAtMs = 0
  #invalid: string | undefined
  #idle: NodeJS.Timeout | undefined
  #retry: NodeJS.Timeout | undefined

  /** @param denied why the plugin may not run; undefined: it may */
  constructor(plugin: Plugin, slot: PluginSlot, secrets: PluginSecrets, denied: string | undefined) {
    this.secrets = secrets
    this.#plugin = plugin
    this.#denied = denied
    this.#slot = slot
    const { digest, code = '' } = plugin.source.configMapRef ?? {}
    this.id = (digest ?? createHash('sha256').update(code).digest('hex')).slice(0, VERSION_DIGITS)
  }

  /** Why it cannot be loaded; undefined if it is loaded, or was not started yet. */
  get problem(): string | undefined {
    return this.#invalid
  }

  get isLoaded(): boolean {
    return this.#isLoaded
  }

  /** Whether it may run and nothing has tried to load it. */
  get isUntried(): boolean {
    const { invalid } = this.#plugin.source.configMapRef ?? {}
    return !this.#isLoaded && (this.#denied ?? this.secrets.problem ?? invalid ?? this.#invalid) === undefined
  }

  get isInProcess(): boolean {
    return this.#plugin.isolation === 'InProcess'
  }

  /** The middleware, if it runs in this thread and is loaded. */
  get direct(): DirectPlugin | undefined {
    return this.#thread?.direct
  }

  /** Where the plugin runs, once it is loaded. Rejects with a PluginError. `isAwaited`: by a request. */
  async use(isAwaited = true): Promise<PluginRunner> {
    const { nowMs } = this.#slot
    if (this.#denied !== undefined) throw new PluginError('failed', this.#denied)
    if (this.secrets.problem !== undefined) throw new PluginError('failed', this.secrets.problem)
    if (this.#thread === undefined && nowMs() < this.#startableAtMs) throw new PluginError('failed', this.#invalid ?? 'the thread is about to be started again')
    const thread = (this.#thread ??= this.#start())
    await (isAwaited ? thread.load.wait() : thread.load.ready)
    // The module of a plugin in process stays in memory, and so does its state.
    if (!this.isInProcess) this.#idle ??= setInterval(() => this.#endIfIdle(), this.#slot.isRemoved ? REMOVED_IDLE_MS : IDLE_MS).unref()
    this.#isUsed = true
    this.#isLoaded = true
    this.#invalid = undefined
    return thread
  }

  #endIfIdle(): void {
    if (!this.#isUsed && this.#thread?.busy === 0) this.retire()
    this.#isUsed = false
  }

  #stopTimers(): void {
    clearInterval(this.#idle)
    clearTimeout(this.#retry)
    this.#idle = undefined
  }

  /** Ends the thread when the calls that run are finished. */
  retire(): void {
    this.#stopTimers()
    const thread = this.#thread
    this.#thread = undefined
    if (thread === undefined) return
    this.#retired.add(thread)
    // Requests that wait until it is loaded are still served by it: they start their calls before the next turn of the event loop.
    const retireLater = (): void => void setImmediate(() => thread.retire())
    thread.load.ready.then(retireLater, retireLater)
  }

  /** Ends all threads at once. */
  end(): void {
    this.#stopTimers()
    this.#thread?.end('')
    for (const thread of this.#retired) thread.end('')
  }

  #start(): PluginRunner {
    const { source, config = {}, limits } = this.#plugin
    const { code = '', file = 'plugin', invalid } = source.configMapRef ?? { invalid: 'source.file is for config files only' }
    if (invalid !== undefined) throw new PluginError('failed', invalid)
    const options: ThreadOptions = {
      data: { code, file, config, secrets: this.secrets.values },
      timeoutMs: parseTimeout(limits?.timeout) ?? DEFAULT_TIMEOUT_MS,
      memoryMb: Number.parseInt(limits?.memory ?? '', 10) || DEFAULT_MEMORY_MB,
      services: this.#slot.services(this.#plugin),
      onLog: (level, message) => this.#slot.log(level, message),
      onMetrics: (samples) => this.#slot.record(samples),
      onEnd: (reason) => this.#onEnd(thread, reason),
    }
    const thread = this.isInProcess
      ? new InProcessPlugin(options)
      : new PluginThread(options, this.#plugin.isolation === 'Process' ? startProcess : startWorker)
    if (!this.isInProcess) pluginMetrics(this.#slot.registry).threads.series(this.#slot.name).value++
    return thread
  }

  /** The first new start is immediate; later ones wait, longer each time. A plugin that was never loaded is tried again without a request, too. */
  #onEnd(thread: PluginRunner, reason: string): void {
    if (!this.isInProcess) pluginMetrics(this.#slot.registry).threads.series(this.#slot.name).value--
    this.#retired.delete(thread)
    if (reason === '' || this.#thread !== thread) return
    this.#thread = undefined
    this.#invalid = this.#isLoaded ? undefined : reason
    this.#failures++
    const delayMs = this.#failures === 1 && this.#isLoaded ? 0 : Math.min(MAX_DELAY_MS, 100 * 2 ** this.#failures)
    this.#startableAtMs = this.#slot.nowMs() + delayMs
    this.#slot.onEnd(reason, this.#isLoaded)
    clearTimeout(this.#retry)
    // Each module of a plugin in process stays in memory.
    if (this.#isLoaded || this.isInProcess) return
    this.#retry = setTimeout(() => this.#slot.retry(this), Math.min(MAX_RETRY_MS, 1000 * 2 ** this.#failures)).unref()
  }
}

/**
 * The versions of one plugin of one policy: the current one, and the last one that was loaded. A version that was replaced before anything tried to load it
 * counts as the latter if there is no other: the next config may have an unusable one, and other threads have loaded it.
 */
export class PluginSlot {
  readonly name: string
  readonly nowMs: () => number
  #isRemoved = false
  readonly #state: PolicyState
  #fingerprint = ''
  /** The last arguments of `update`. */
  #seen: readonly [Plugin, PolicyState] | undefined
  #current: Version | undefined
  #lastGood: Version | undefined
  /** Series of the metrics that the plugin wrote. */
  readonly #series = new Set<string>()
  #lines = 0
  #linesSinceMs = 0

  constructor(name: string, state: PolicyState) {
    this.name = name
    this.#state = state
    this.nowMs = state.monotonicMs
  }

  get isRemoved(): boolean {
    return this.#isRemoved
  }

  get registry(): PolicyState['registry'] {
    return this.#state.registry
  }

  /** What the gateway does for the plugin. */
  services({ fetch, kv }: Plugin): PluginServices {
    const { destinations, registry } = this.#state
    const { fetches } = pluginMetrics(registry)
    const fetcher = new Fetcher({ hosts: fetch?.hosts, destinations, onResult: (host, result) => void fetches.series(this.name, host, result).value++ })
    return {
      keyValue: (call) => (kv === 'Redis' ? runRemote(scriptStores.get(registry), this.name, call) : this.#keyValue(call)),
      fetch: (call) => fetcher.run(call),
    }
  }

  async #keyValue(call: KeyValueCall | undefined): Promise<KeyValueResult> {
    const { shared, registry } = this.#state
    if (shared !== undefined) return shared.keyValue(this.name, call)
    const store = valuesOf(registry)
    return call === undefined ? void store.drop(this.name) : store.run(this.name, call)
  }

  /** Ends the threads of a plugin that the config no longer has, each when its calls have ended, and drops its values. */
  remove(): void {
    this.#isRemoved = true
    this.#dropVersion()
    this.#keyValue(undefined).catch(() => undefined)
    this.#current?.retire()
    if (this.#lastGood !== this.#current) this.#lastGood?.retire()
  }

  /** Makes a version the current one. The one before stays until the new one is loaded. */
  update(plugin: Plugin, state: PolicyState): void {
    if (this.#seen?.[0] === plugin && this.#seen[1] === state) return
    this.#seen = [plugin, state]
    const { permitsInProcess = false, secrets: all } = state
    const { source, config, limits, isolation, fetch, kv } = plugin
    const isDenied = isolation === 'InProcess' && !permitsInProcess
    const withheld = source.configMapRef?.denied === true ? source.configMapRef.invalid : undefined
    const denied = isDenied ? 'isolation InProcess is not permitted: set plugins.inProcess in ProxyParameters' : withheld
    const secrets = readSecrets(plugin, all)
    const fingerprint = JSON.stringify([source, config, limits, isolation, fetch, kv, denied, secrets.digest, secrets.problem])
    if (fingerprint === this.#fingerprint) return
    this.#fingerprint = fingerprint
    const before = this.#current
    this.#current = new Version(plugin, this, secrets, denied)
    if (before !== this.#lastGood) {
      if (before?.isUntried === true && this.#lastGood?.isLoaded !== true) {
        this.#lastGood?.retire()
        this.#lastGood = before
      } else before?.retire()
    }
    // A withdrawn permission or secret ends the version that had it.
    if ((denied ?? secrets.problem) === undefined) return
    this.#lastGood?.retire()
    this.#lastGood = undefined
    this.#dropVersion()
  }

  /** The middleware of the current version, if it runs in this thread and is loaded. */
  get direct(): DirectPlugin | undefined {
    return this.#current === this.#lastGood ? this.#current?.direct : undefined
  }

  /** The current version, or the last good one if the current one cannot be loaded. Rejects with a PluginError. `isAwaited`: by a request. */
  async use(isAwaited = true): Promise<PluginRunner> {
    const current = this.#current
    const lastGood = this.#lastGood
    if (current === undefined) throw new PluginError('failed', 'no version')
    if (lastGood === current || lastGood === undefined) {
      const thread = await current.use(isAwaited)
      this.#accept(current)
      return thread
    }
    try {
      const thread = await within(current.use(isAwaited), SWAP_MS)
      this.#accept(current)
      return thread
    } catch {
      if (lastGood.isLoaded) return lastGood.use()
      try {
        const thread = await lastGood.use()
        this.#show(lastGood)
        return thread
      } catch {
        return current.use()
      }
    }
  }

  #accept(version: Version): void {
    const before = this.#lastGood
    if (before === version || this.#current !== version) return
    this.#lastGood = version
    before?.retire()
    this.#dropVersion()
    this.#show(version)
  }

  #show(version: Version): void {
    pluginMetrics(this.registry).versions.series(this.name, version.id).value = 1
  }

  #dropVersion(): void {
    pluginMetrics(this.registry).versions.drop('plugin', (name) => name === this.name)
  }

  /** The version that serves calls. */
  get version(): string {
    return this.#lastGood?.isLoaded === true ? this.#lastGood.id : 'none'
  }

  /** Loads the current version if that was not tried yet, so that its errors are known before the first request. */
  verify(): void {
    if (this.#current?.isLoaded === false && this.#current.problem === undefined) this.use(false).catch(() => undefined)
  }

  /** Loads a version that could not be loaded again. */
  retry(version: Version): void {
    if (version === this.#current) this.use(false).catch(() => undefined)
  }

  /** Why the current version cannot be loaded. */
  get problem(): string | undefined {
    const problem = this.#current?.problem
    return problem === undefined ? undefined : this.#redact(problem)
  }

  #redact(text: string): string {
    const versions = [this.#current, this.#lastGood].filter((version) => version !== undefined)
    return versions.reduce((line, { secrets }) => redact(line, secrets), text)
  }

  /** Logs a line of the plugin; drops lines above the limit. */
  log(level: 'error' | 'warn' | 'info' | 'debug', text: string): void {
    const now = this.nowMs()
    if (now - this.#linesSinceMs >= 1000) {
      this.#linesSinceMs = now
      this.#lines = 0
    }
    if (++this.#lines > MAX_LINES_PER_SECOND) return
    const message = this.#redact(text)
    const log: Logger | undefined = this.#state.log
    if (level === 'error' || level === 'warn') log?.[level]('message of a plugin', { code: 'PX4018', plugin: this.name, message })
    else log?.[level]('message of a plugin', { plugin: this.name, message })
  }

  /** Adds samples of the plugin to its metrics. Series beyond the limit become one, `other`. */
  record(samples: readonly MetricSample[]): void {
    const { events, values } = pluginMetrics(this.#state.registry)
    for (const { kind, name, detail, amount } of samples) {
      const key = `${kind} ${name} ${detail}`
      const isKnown = this.#series.has(key) || this.#series.size < MAX_SERIES
      if (isKnown) this.#series.add(key)
      const labels = isKnown ? [this.name, name, detail] : [this.name, OVERFLOW_LABEL, OVERFLOW_LABEL]
      if (kind === 'count') events.series(...labels).value += amount
      else values.series(...labels).observe(amount)
    }
  }

  onEnd(reason: string, wasLoaded: boolean): void {
    pluginMetrics(this.#state.registry).ends.series(this.name).value++
    const stays = this.#lastGood?.isLoaded === true && !wasLoaded ? '; its last good version stays' : ''
    this.#state.log?.error(wasLoaded ? 'plugin ended; it is started again' : `plugin cannot be loaded${stays}`, {
      code: wasLoaded ? 'PX4019' : 'PX4020',
      plugin: this.name,
      error: this.#redact(reason),
    })
  }

  end(): void {
    this.#current?.end()
    this.#lastGood?.end()
  }

  /** An error without the secrets of the plugin, for records of the request. */
  redacted({ kind, message }: PluginError): PluginError {
    return new PluginError(kind, this.#redact(message))
  }

  /** Logs a failed call. */
  report(error: PluginError): void {
    this.log('error', error.message)
  }
}

const values = new WeakMap<PolicyState['registry'], KeyValueStore>()

/** Values of plugins where one thread handles all traffic. */
function valuesOf(registry: PolicyState['registry']): KeyValueStore {
  let store = values.get(registry)
  if (store === undefined) values.set(registry, (store = new KeyValueStore()))
  return store
}

const slots = new WeakMap<PolicyState['registry'], Map<string, PluginSlot>>()

/** Ends the threads of all plugins. */
export function endPlugins(registry: PolicyState['registry']): void {
  for (const slot of slots.get(registry)?.values() ?? []) slot.end()
  slots.delete(registry)
}

/** Makes the plugins of the policies the current versions. Rules are compiled later, with their first request: by then, this version may have been replaced. */
export function updatePlugins(state: PolicyState, policies: Iterable<ConfigPolicy>): void {
  for (const { traffic } of policies) for (const plugin of traffic?.plugins ?? []) pluginSlot(plugin, state)
}

/** Loads plugins of the policies that were not loaded yet. */
export function verifyPlugins(state: PolicyState, policies: Iterable<ConfigPolicy>): void {
  for (const { traffic } of policies) for (const plugin of traffic?.plugins ?? []) pluginSlot(plugin, state).verify()
}

/** Plugins whose current version cannot be loaded. */
export function refusedPlugins(registry: PolicyState['registry']): RefusedPlugin[] {
  return [...(slots.get(registry) ?? [])].flatMap(([plugin, { problem }]) => (problem === undefined ? [] : [{ plugin, problem }]))
}

/** Ends plugins that no policy has any more, each when its calls have ended. */
export function retainPlugins(registry: PolicyState['registry'], policies: Iterable<ConfigPolicy>): void {
  const known = slots.get(registry)
  if (known === undefined || known.size === 0) return
  const names = new Set([...policies].flatMap(({ traffic }) => traffic?.plugins ?? []).map(nameOf))
  for (const [name, slot] of known) {
    if (names.has(name)) continue
    known.delete(name)
    slot.remove()
  }
}

/** Name in logs and metrics: `<namespace>/<policy>/<plugin>`. */
function nameOf({ name, source }: Plugin): string {
  const { owner = '' } = source.configMapRef ?? {}
  return owner === '' ? name : `${owner}/${name}`
}

/** The slot of a plugin, shared by all rules that the policy applies to. */
export function pluginSlot(plugin: Plugin, state: PolicyState): PluginSlot {
  let known = slots.get(state.registry)
  if (known === undefined) slots.set(state.registry, (known = new Map()))
  const name = nameOf(plugin)
  let slot = known.get(name)
  if (slot === undefined) known.set(name, (slot = new PluginSlot(name, state)))
  slot.update(plugin, state)
  return slot
}

async function within<T>(work: Promise<T>, ms: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new PluginError('timeout', 'still loading')), ms)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
