import { ProxyError } from '../request/exchange/error.ts'
import { toProxyFailure } from '../backend/forward/failure.ts'
import type { Gateway } from './gateway.ts'
import type { TcpConnection } from '../net/server/program.ts'
import { relayTcp } from './splice.ts'
import type { Telemetry } from '../observe/telemetry/telemetry.ts'
import { UpstreamError } from '../net/upstream/types.ts'

/** Relays a connection to a backend of its listener's L4 route, or closes it: TCP has no error responses. */
export function relayToBackend(tcp: TcpConnection, gateway: Gateway, telemetry: Telemetry): void {
  const startedAtMs = performance.now()
  const { rule, labels, telemetry: policy } = gateway.findTcpRule(tcp.listener, tcp.sni)
  const finish = (error: ProxyError | undefined, endpoint?: string): void =>
    telemetry.onTcpFinished({
      connection: tcp.connection,
      sni: tcp.sni,
      labels: rule?.labels ?? labels,
      endpoint,
      error,
      startedAtMs,
      finishedAtMs: performance.now(),
      telemetry: policy,
    })
  const reject = (error: ProxyError): void => {
    tcp.socket.destroy()
    finish(error)
  }
  if (rule === undefined) return reject(new ProxyError('ROUTE_NOT_FOUND'))
  const destination = rule.pick()
  if (destination === undefined) return reject(new ProxyError('NO_VALID_BACKENDS'))
  if (destination.error !== undefined) return reject(new ProxyError(destination.error))
  const isPassthrough = isTlsPassthrough(tcp)
  if (destination.settings.broken !== undefined && !isPassthrough) return reject(new ProxyError('UPSTREAM_FAILED', { detail: destination.settings.broken }))
  const target = destination.pickForConnection(tcp.sni)
  if (target === undefined) return reject(new ProxyError('NO_HEALTHY_BACKENDS', { detail: destination.explainNoEndpoint(tcp.sni) }))
  target.pending++
  const transport = destination.transportTo(target)
  void relayTcp(tcp, isPassthrough ? { ...transport, tls: undefined } : transport, { connectMs: destination.settings.connectMs }).then(({ error }) => {
    target.pending--
    finish(error === undefined ? undefined : toFailure(error), target.label)
  })
}

/** With TLS passthrough the client encrypts, so the TLS policies of the backend do not apply. */
function isTlsPassthrough({ connection, initial }: TcpConnection): boolean {
  return connection.tls === undefined && initial?.[0] === 0x16
}

/** A connection that breaks off is a failure of the upstream, too. */
function toFailure(error: Error): ProxyError {
  return error instanceof UpstreamError ? toProxyFailure(error) : new ProxyError('UPSTREAM_FAILED', { cause: error })
}
