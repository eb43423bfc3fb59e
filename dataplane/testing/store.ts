import type { MessageKind } from '#api/config/message-kinds.ts'
import type { ConfigChanges, ConfigMessage, ConfigStore } from '../config/store.ts'

/** Replaces all messages of a store without a stream; messages of equal content keep their identity. */
export function replaceMessages(store: ConfigStore, messages: readonly ConfigMessage[]): ConfigChanges {
  const { binds, listeners, routes, tcpRoutes, backends, policies, secrets, services } = store.snapshot()
  const known: Readonly<Record<MessageKind, ReadonlyMap<string, object>>> = {
    bind: binds,
    listener: listeners,
    route: routes,
    tcpRoute: tcpRoutes,
    backend: backends,
    policy: policies,
    secret: secrets,
    service: services,
  }
  const kept = new Set(messages.map(({ kind, message }) => `${kind} ${message.key}`))
  const upserts = messages.filter(({ kind, message }) => JSON.stringify(known[kind].get(message.key)) !== JSON.stringify(message))
  const removals = (Object.keys(known) as MessageKind[]).flatMap((kind) =>
    [...known[kind].keys()].filter((key) => !kept.has(`${kind} ${key}`)).map((key) => ({ kind, key })),
  )
  return store.apply('file', { upserts, removals })
}
