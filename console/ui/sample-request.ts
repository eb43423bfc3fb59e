import type { Overview } from '#api/management/overview.ts'
import { shellWord } from '../api/draft.ts'
import { isAdded } from './short-form.ts'

/** A command that sends a request to a route; undefined without a listener for HTTP. */
export function curlOf({ listeners, routes }: Pick<Overview, 'listeners' | 'routes'>): string | undefined {
  const listener = listeners.find(({ protocol }) => protocol === 'HTTP') ?? listeners.find(({ protocol }) => protocol === 'HTTPS')
  if (listener === undefined) return undefined
  const own = routes.filter((route) => route.listeners.includes(listener.key))
  const host = own.find(({ hostnames }) => hostnames.length > 0)?.hostnames[0]?.replace(/^\*\./, 'www.')
  const header = own.some(({ hostnames }) => hostnames.length === 0) || host === undefined ? '' : `-H ${shellWord(`host: ${host}`)} `
  // The short form of LLMs responds at the paths of its API only.
  return `curl -i ${header}${listener.protocol.toLowerCase()}://127.0.0.1:${listener.port}/${own.some(isAdded) ? 'v1/models' : ''}`
}
