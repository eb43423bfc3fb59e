import { overview } from '../api/live.ts'

interface Named {
  readonly namespace: string
  readonly name: string
  readonly origin: string | null
}

/** The model that a route is made from by the short form of a config file. */
const modelOf = ({ origin }: Pick<Named, 'origin'>): string | undefined => /^llm\.models\.(.+)$/s.exec(origin ?? '')?.[1]

/** Whether the short form adds a route that the user did not write: lists of models, and errors. */
export const isAdded = ({ origin }: Pick<Named, 'origin'>): boolean => origin === 'llm'

/** A route as the user wrote it: the name of its model, the MCP servers, or namespace and name. */
export function routeTitle(route: Named): { readonly title: string; readonly kind: string | undefined } {
  const model = modelOf(route)
  if (model !== undefined) return { title: model, kind: 'model' }
  return route.origin === 'mcp' ? { title: 'MCP servers', kind: 'mcp' } : { title: `${route.namespace}/${route.name}`, kind: undefined }
}

/** A backend as the user wrote it. Those of the short form have the name of the route. */
export function backendTitle(key: string): string {
  const route = overview.value?.routes.find(({ namespace, name, origin }) => typeof origin === 'string' && key === `${namespace}/${name}`)
  if (route === undefined) return key
  return isAdded(route) ? 'list of models' : routeTitle(route).title
}
