import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect } from '@jest/globals'
import { expectations, type ExampleRun } from '../../harness/example/expectations.ts'

async function statusFrom(run: ExampleRun, family: 'TCP4' | 'TCP6', address: string, header = ''): Promise<string> {
  const socket = connect(run.port(8080), '127.0.0.1')
  const local = family === 'TCP4' ? '127.0.0.1' : '::1'
  socket.write(`PROXY ${family} ${address} ${local} 4000 80\r\nGET / HTTP/1.1\r\nhost: a\r\n${header}connection: close\r\n\r\n`)
  const response = await text(socket)
  return `${response.slice(9, 12)} ${/"x-country":"(\w+)"/.exec(response)?.[1] ?? ''}`
}

export default expectations({
  'clients of denied countries are rejected, in IPv4 and IPv6, whatever address they claim': async (run) => {
    expect(await statusFrom(run, 'TCP4', '192.0.2.255')).toBe('451 ')
    expect(await statusFrom(run, 'TCP4', '192.0.3.0')).toBe('200 unknown')
    expect(await statusFrom(run, 'TCP6', '2001:db8::1')).toBe('451 ')
    expect(await statusFrom(run, 'TCP6', '2001:db8:1::')).toBe('200 BB')
    // The client of the command where localhost is an IPv6 address.
    expect(await statusFrom(run, 'TCP6', '::1')).toBe('200 AA')
    expect(await statusFrom(run, 'TCP6', '::2')).toBe('200 unknown')
    expect(await statusFrom(run, 'TCP4', '192.0.2.0', 'x-client-address: 127.0.0.1\r\nx-country: AA\r\n')).toBe('451 ')
  },
})
