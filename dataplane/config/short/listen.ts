import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import { withoutBrackets } from '../../http/message.ts'

/** Fields of a short form that say where it listens; all addresses if the list is empty. */
export interface Place {
  readonly port?: number
  readonly addresses?: string[]
}

/** The place of a short form, whose `listen` stands for `addresses` and `port`. */
export function readListen({ port, addresses, listen }: Place & { readonly listen?: string }, report: (field: string, text: string) => void): Place {
  if (listen === undefined) return { ...(port !== undefined && { port }), ...(addresses && { addresses }) }
  if (addresses !== undefined) report('addresses', 'is not used with listen; remove one of them')
  const place = parseListen(listen)
  if (place === undefined)
    report('listen', `must be an address, or an address and a port, such as 127.0.0.1:4000, [::1]:4000, 0.0.0.0 or *:4000; is ${JSON.stringify(listen)}`)
  if (port !== undefined && place?.port !== undefined) report('port', 'is not used with a port in listen; remove one of them')
  return { ...(port !== undefined && { port }), ...place }
}

function parseListen(text: string): Place | undefined {
  const [, host = '', port] = /^(\*|\[[^\]]*\]|[^:]*)(?::(\d{1,5}))?$/.exec(isIP(text) === 6 ? `[${text}]` : text) ?? []
  const address = host === 'localhost' ? '127.0.0.1' : withoutBrackets(host)
  const number = port === undefined ? undefined : Number(port)
  if ((host !== '*' && isIP(address) === 0) || number === 0 || (number ?? 0) > 65_535) return undefined
  return { addresses: host === '*' ? [] : host === 'localhost' ? loopbackAddresses() : [address], ...(number !== undefined && { port: number }) }
}

/** The loopback addresses that the machine has. */
export function loopbackAddresses(): string[] {
  const own = Object.values(networkInterfaces()).flatMap((list) => list ?? [])
  return ['127.0.0.1', ...(own.some(({ address }) => address === '::1') ? ['::1'] : [])]
}
