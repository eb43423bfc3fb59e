import type { RpcMessage } from './rpc.ts'

const MEMBERS: ReadonlySet<string> = new Set(['jsonrpc', 'id', 'method', 'params'])

/**
 * The text of a request with `meta`, which is JSON, as the last member of `params`. `message` is the content of the text, in which the message and
 * `params` have no member twice (`members.ts`). Undefined if the end of `params` is not known without reading the text.
 */
export function spliceMeta(text: string, message: RpcMessage, meta: string): string | undefined {
  const { params } = message
  const names = Object.keys(message)
  // Names that are numbers come first in an object, wherever they are in the text.
  if (params === undefined || names.at(-1) !== 'params' || !names.every((name) => MEMBERS.has(name))) return undefined
  if (Object.keys(params).length === 0 || Object.hasOwn(params, '_meta') || !text.endsWith('}}')) return undefined
  return `${text.slice(0, -2)},"_meta":${meta}}}`
}
