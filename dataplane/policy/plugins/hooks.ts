import { doubles, isShortJson, parseJsonInSteps, printJsonInSteps } from '#api/json/index.ts'
import { toResponseHead } from '../../request/exchange/answer.ts'
import { ProxyError } from '../../request/exchange/error.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { pluginHooks, type BackendHook, type HookOutcome, type RequestHooks } from '../../request/exchange/plugin-hooks.ts'
import { variables } from '../../request/exchange/variables.ts'
import { runWhileConnected } from '../../request/exchange/connected.ts'
import { runSync, type Cooperative } from '../../runtime/cooperative.ts'
import { toAnswer } from './changes.ts'
import { MAX_HOOK_LENGTH, type HookName } from './hooks/run.ts'
import type { PluginSlot } from './host.ts'
import { pluginMetrics } from './metrics.ts'
import { PluginError } from './plugin-error.ts'
import type { Step } from './runner.ts'

/** Adds the hooks of a plugin to a request, so that its backend runs them. */
export function addHooks(exchange: Exchange, slot: PluginSlot, hooks: ReadonlySet<HookName>, isFailOpen: boolean): void {
  if (hooks.size === (hooks.has('request') ? 1 : 0)) return
  pluginHooks.set(exchange, [...(pluginHooks.get(exchange) ?? []), new HookSession(exchange, slot, hooks, isFailOpen)])
}

/** The hooks of one plugin for one request. Each call may run in another version of the plugin, or in another thread: state is passed along. */
class HookSession implements RequestHooks {
  readonly #exchange: Exchange
  readonly #slot: PluginSlot
  readonly #hooks: ReadonlySet<HookName>
  readonly #isFailOpen: boolean
  #caller: string | undefined
  #state = '{}'

  constructor(exchange: Exchange, slot: PluginSlot, hooks: ReadonlySet<HookName>, isFailOpen: boolean) {
    this.#exchange = exchange
    this.#slot = slot
    this.#hooks = hooks
    this.#isFailOpen = isFailOpen
  }

  has(hook: BackendHook): boolean {
    return this.#hooks.has(hook)
  }

  async run<T>(hook: BackendHook, input: unknown, read: (output: unknown) => T | Promise<T>): Promise<HookOutcome<T> | undefined> {
    try {
      const step = await this.#call(hook, input)
      if (step.type === 'answer') {
        this.#count(hook, 'answered')
        return { response: toResponseHead(toAnswer(step)) }
      }
      if (step.type !== 'hooked') throw new PluginError('failed', 'no result')
      const value = await this.#read(step.output, read)
      this.#state = step.state
      this.#count(hook, 'passed')
      return { value }
    } catch (thrown) {
      if (!(thrown instanceof PluginError)) throw thrown
      const error = new PluginError(thrown.kind, `${hook}: ${thrown.message}`)
      this.#count(hook, error.kind)
      this.#slot.report(error)
      if (this.#isFailOpen) return undefined
      throw new ProxyError(error.kind === 'timeout' ? 'PLUGIN_TIMEOUT' : 'PLUGIN', { cause: this.#slot.redacted(error) })
    }
  }

  async #call(hook: BackendHook, value: unknown): Promise<Step> {
    const pieces = await this.#work(printJsonInSteps(value))
    const input = pieces.length === 1 ? (pieces[0] ?? '') : pieces.join('')
    if (input.length > MAX_HOOK_LENGTH) throw new PluginError('failed', `the value for the hook has more than ${MAX_HOOK_LENGTH} characters of JSON`)
    const runner = await this.#slot.use()
    this.#caller ??= describeCaller(this.#exchange)
    return runner.run({ type: 'hook', id: runner.nextId(), hook, input, caller: this.#caller, state: this.#state })
  }

  async #read<T>(output: string, read: (output: unknown) => T | Promise<T>): Promise<T> {
    const parsing = parseJsonInSteps(output, { numbers: doubles })
    try {
      return await read(isShortJson(output) ? runSync(parsing) : await runWhileConnected(parsing, this.#exchange))
    } catch (error) {
      if (this.#exchange.abortReason !== undefined) throw error
      throw new PluginError('failed', `it returned a value that cannot be used: ${error instanceof Error ? error.message : String(error)}`)
    }
  }

  #work<T>(work: Cooperative<T>): Promise<T> {
    return runWhileConnected(work, this.#exchange)
  }

  #count(hook: BackendHook, result: string): void {
    pluginMetrics(this.#slot.registry).hooks.series(this.#slot.name, hook, result).value++
  }
}

/** The `caller` of hooks as JSON, without credentials other than those in headers. */
function describeCaller(exchange: Exchange): string {
  const headers: Record<string, string> = {}
  for (const [name, value] of exchange.request.headers) {
    const key = name.toLowerCase()
    const before = Object.hasOwn(headers, key) ? headers[key] : undefined
    Object.defineProperty(headers, key, { value: before === undefined ? value : `${before}, ${value}`, enumerable: true, configurable: true, writable: true })
  }
  const { rawToken: _, ...jwt } = variables.jwt.get(exchange) ?? {}
  const { key: __, ...apiKey } = variables.apiKey.get(exchange) ?? {}
  const user = variables.basicAuth.get(exchange)?.username
  const caller = {
    headers,
    ...(Object.keys(jwt).length > 0 && { jwt }),
    ...(Object.keys(apiKey).length > 0 && { apiKey }),
    ...(user !== undefined && { user }),
  }
  return JSON.stringify(caller, (_key, value: unknown) => (typeof value === 'bigint' ? Number(value) : value))
}
