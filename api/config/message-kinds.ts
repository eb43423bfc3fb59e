/** Message kinds of the stream: kind -> definition. `service` is sent as an Address, all others as Resources. */
export const messageKinds = {
  bind: 'Bind',
  listener: 'Listener',
  route: 'Route',
  tcpRoute: 'TcpRoute',
  backend: 'Backend',
  policy: 'Policy',
  secret: 'Secret',
  service: 'Service',
} as const

/** Kind of a message of the config stream. */
export type MessageKind = keyof typeof messageKinds
