import { checkConfig } from '#api/plugin/config.ts'
import type { Plugin, PluginHooks, PluginLog, PluginTools } from '#api/plugin/index.ts'
import { checkHooks } from '../hooks/run.ts'
import { MAX_LOG_LENGTH, type FromPlugin } from './messages.ts'
import { describeError } from './module-url.ts'

export type LogLevel = Extract<FromPlugin, { type: 'log' }>['level']

/** The `log` of a plugin. */
export function createLog(file: string, write: (level: LogLevel, message: string) => void): PluginLog {
  const toText = (part: unknown): string => {
    if (typeof part === 'string') return part
    if (part instanceof Error) return describeError(part, file)
    return JSON.stringify(part) ?? String(part)
  }
  const logAt =
    (level: LogLevel) =>
    (...parts: unknown[]): void =>
      write(level, parts.map(toText).join(' ').slice(0, MAX_LOG_LENGTH))
  return { error: logAt('error'), warn: logAt('warn'), info: logAt('info'), debug: logAt('debug') }
}

/** Checks the shape and the config of a plugin, and runs its `setup`. Rejects with an error for the log. */
export async function setUpPlugin(plugin: unknown, tools: PluginTools<unknown>): Promise<PluginHooks> {
  if (typeof plugin !== 'object' || plugin === null || !('setup' in plugin) || typeof plugin.setup !== 'function')
    throw new Error('the default export is not a plugin: export default definePlugin({ setup })')
  const { configSchema, setup } = plugin as Plugin
  checkConfig(configSchema, tools.config)
  return checkHooks(await setup(tools))
}
