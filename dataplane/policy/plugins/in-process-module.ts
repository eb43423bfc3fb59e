import type { PluginTools } from '#api/plugin/index.ts'
import type { FromPlugin, PluginData, StreamMessage, ToPlugin } from './guest/messages.ts'
import { isStreamMessage, PluginCalls } from './guest/calls.ts'
import { DirectPlugin } from './direct.ts'
import { importModule } from './guest/import-module.ts'
import { describeError } from './guest/module-url.ts'
import { MetricCollector } from './guest/plugin-metrics.ts'
import { createFetch } from './guest/fetch-messages.ts'
import { createKv } from './guest/services.ts'
import { createLog, setUpPlugin } from './guest/setup.ts'
import { PluginError } from './plugin-error.ts'
import type { ThreadOptions } from './thread.ts'

/** What a plugin in this thread sends. */
export type StepMessage = Extract<FromPlugin, { type: 'next' | 'done' | 'answer' | 'hooked' | 'failed' }> | StreamMessage

interface LoadOptions extends Pick<ThreadOptions, 'timeoutMs' | 'onLog' | 'onMetrics' | 'services'> {
  readonly data: PluginData
  readonly onStep: (message: StepMessage) => void
}

/** A plugin that is loaded in this thread. */
export interface LoadedPlugin {
  readonly direct: DirectPlugin
  /** As a message to a worker thread. */
  receive(message: ToPlugin): void
  close(): void
}

/** Time after which metrics are written. */
const METRICS_MS = 100

/** Imports a plugin into this thread and runs its `setup`. Rejects with a PluginError. */
export async function loadPlugin({ data: { code, file, config, secrets }, timeoutMs, onLog, onMetrics, services, onStep }: LoadOptions): Promise<LoadedPlugin> {
  let timer: NodeJS.Timeout | undefined
  const writeMetrics = (): void => {
    timer = undefined
    onMetrics(metrics.take())
  }
  const metrics: MetricCollector = new MetricCollector(() => (timer ??= setTimeout(writeMetrics, METRICS_MS).unref()))
  const describe = (error: unknown): string => describeError(error, file)
  try {
    const plugin = await importModule(code, file)
    // A copy: defaults of configSchema are written into it.
    const tools: PluginTools<unknown> = {
      config: structuredClone(config),
      log: createLog(file, onLog),
      metrics,
      kv: createKv((call) => services.keyValue(call)),
      fetch: createFetch((call) => services.fetch(call)),
      secrets: Object.freeze({ ...secrets }),
    }
    const hooks = await setUpPlugin(plugin, tools)
    const calls = new PluginCalls(hooks, (message) => onStep(message as StepMessage), describe)
    return {
      direct: new DirectPlugin(hooks, timeoutMs, describe),
      receive(message) {
        if (message.type === 'request' || message.type === 'hook')
          calls.run(message).catch((error: unknown) => onStep({ type: 'failed', id: message.id, message: describe(error) }))
        else if (message.type === 'response') calls.respond(message)
        else if (message.type === 'cancel') calls.cancel(message.id)
        else if (isStreamMessage(message)) calls.receive(message)
      },
      close() {
        if (timer === undefined) return
        clearTimeout(timer)
        writeMetrics()
      },
    }
  } catch (error) {
    throw new PluginError('failed', describe(error))
  }
}
