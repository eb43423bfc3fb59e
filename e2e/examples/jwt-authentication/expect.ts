import { once } from 'node:events'
import { expect } from '@jest/globals'
import { WebSocket } from 'ws'
import { expectations } from '../../harness/example/expectations.ts'
import { tokens } from './tokens.ts'

const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })

export default expectations({
  'the upstream never receives the token, and the log contains the subject': async (run) => {
    expect((await run.send(8080, bearer(tokens.valid))).json().headers['authorization']).toBeUndefined()
    await run.dataplane.program.waitForLine(/jwt\.sub=bob/)
  },
  'a WebSocket opens with a token, relays frames and has one line in the log; without a token it is rejected (row 71)': async (run) => {
    const url = `ws://127.0.0.1:${run.port(8080)}/socket`
    const [error] = await once(new WebSocket(url), 'error')
    expect(String(error)).toContain('401')
    const client = new WebSocket(url, bearer(tokens.valid))
    const [greeting] = await once(client, 'message')
    expect(JSON.parse(String(greeting)).headers).not.toHaveProperty('authorization')
    client.send('frame')
    expect(String((await once(client, 'message'))[0])).toBe('frame')
    const isItsLine = ({ text }: { text: string }): boolean => text.includes('http.path=/socket') && text.includes('http.status=101')
    expect(run.dataplane.program.lines.filter(isItsLine)).toEqual([])
    client.close()
    await run.dataplane.program.waitForLine(/http\.path=\/socket.*http\.status=101.*jwt\.sub=bob/)
    expect(run.dataplane.program.lines.filter(isItsLine)).toHaveLength(1)
  },
  'tokens with another audience, modified tokens and unsigned tokens are rejected': async (run) => {
    const [head, body] = tokens.valid.split('.')
    const unsigned = Buffer.from('{"alg":"none","kid":"example-1"}').toString('base64url')
    const [, , signature] = tokens.foreign.split('.')
    for (const token of [tokens.foreign, `${head}.${body}.${signature}`, `${unsigned}.${body}.`, 'nonsense'])
      expect((await run.send(8080, bearer(token))).status).toBe(401)
  },
})
