import { Duplex } from 'node:stream'
import { WebSocketHandler } from '@kubernetes/client-node/dist/web-socket-handler.js'
import { loadConfig } from './connection.ts'

/** Channels of a forwarded port: data and errors. */
const DATA = 0
const ERROR = 1

export interface PodPort {
  readonly namespace: string
  readonly pod: string
  readonly port: number
}

/** Opens a connection to a port of a pod through the API server, loopback ports included, as `kubectl port-forward` does. Rejects with a message that names the fix. */
export async function openPodPort(kubeconfig: string | undefined, { namespace, pod, port }: PodPort): Promise<Duplex> {
  const stream = new ForwardedPort()
  // An error may come before or after the request that uses the stream, which reports its own errors.
  stream.on('error', () => undefined)
  const path = `/api/v1/namespaces/${namespace}/pods/${pod}/portforward?ports=${port}`
  const socket = await new WebSocketHandler(loadConfig(kubeconfig))
    .connect(path, null, (channel, bytes) => stream.receive(channel, bytes))
    .catch((error: unknown) => {
      const { message = String(error) } = error as { message?: string }
      throw new Error(`port ${port} of pod ${namespace}/${pod}: ${message} (the user of the kubeconfig needs verb create on pods/portforward)`, {
        cause: error,
      })
    })
  stream.attach(socket)
  return stream
}

/** One forwarded connection as a stream. The first two bytes of each channel repeat the port. */
class ForwardedPort extends Duplex {
  readonly #hasPort = new Set<number>()
  #socket: Awaited<ReturnType<WebSocketHandler['connect']>> | undefined

  attach(socket: Awaited<ReturnType<WebSocketHandler['connect']>>): void {
    this.#socket = socket
    socket.addEventListener('close', () => this.push(null))
  }

  receive(channel: number, bytes: Buffer): boolean {
    const data = this.#hasPort.has(channel) ? bytes : bytes.subarray(2)
    this.#hasPort.add(channel)
    if (channel === ERROR && data.length > 0) this.destroy(new Error(data.toString('utf8').trim()))
    else if (channel === DATA && data.length > 0) this.push(data)
    return true
  }

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    this.#socket?.send(Buffer.concat([Buffer.of(DATA), chunk]))
    done()
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#socket?.close()
    done(error)
  }

  // Methods that node:http calls on a socket.
  setTimeout(): this {
    return this
  }
  setNoDelay(): this {
    return this
  }
  setKeepAlive(): this {
    return this
  }
  ref(): this {
    return this
  }
  unref(): this {
    return this
  }
}
