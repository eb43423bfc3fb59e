import { expect } from '@jest/globals'
import { expectations } from '../../harness/expectations.ts'
import { tokens } from './tokens.ts'

const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })

export default expectations({
  'the upstream never sees the token, and the log names the subject': async (run) => {
    expect((await run.send(8080, bearer(tokens.valid))).json().headers['authorization']).toBeUndefined()
    await run.dataplane.program.waitForLine(/jwt\.sub=bob/)
  },
  'tokens for others, changed ones and unsigned ones are refused': async (run) => {
    const [head, body] = tokens.valid.split('.')
    const unsigned = Buffer.from('{"alg":"none","kid":"example-1"}').toString('base64url')
    const [, , signature] = tokens.foreign.split('.')
    for (const token of [tokens.foreign, `${head}.${body}.${signature}`, `${unsigned}.${body}.`, 'nonsense'])
      expect((await run.send(8080, bearer(token))).status).toBe(401)
  },
})
