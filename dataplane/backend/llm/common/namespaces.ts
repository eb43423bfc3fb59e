/**
 * Tools in a namespace of a Responses request (Codex CLI), for formats without namespaces: the neutral name has both parts. The separator is in no
 * name, so that the parts are found again in a response.
 */
const SEPARATOR = '\x1f'

/** The neutral name of a tool. */
export function joinNamespace(namespace: string | undefined, name: string): string {
  return namespace === undefined ? name : `${namespace}${SEPARATOR}${name}`
}

/** The members of an item that name a tool. */
export function splitNamespace(name: string): { readonly name: string; readonly namespace?: string } {
  const at = name.indexOf(SEPARATOR)
  return at === -1 ? { name } : { name: name.slice(at + 1), namespace: name.slice(0, at) }
}
