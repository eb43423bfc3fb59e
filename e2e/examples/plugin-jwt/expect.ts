import { X509Certificate } from 'node:crypto'
import { expect } from '@jest/globals'
import { jwtVerify } from 'jose'
import { expectations } from '../../harness/example/expectations.ts'

export default expectations({
  'the upstream can verify the token, and a user keeps it for a while': async (run) => {
    const { publicKey } = new X509Certificate(run.keyPair('signer').cert)
    const tokenOf = async (user: string): Promise<string> => {
      const { headers } = (await run.send(8080, { headers: { 'x-user': user, authorization: 'Bearer forged' } })).json()
      return String(headers['authorization']).replace('Bearer ', '')
    }
    const token = await tokenOf('ann')
    const { payload } = await jwtVerify(token, publicKey, { issuer: 'https://gateway.example.com', audience: 'app', algorithms: ['ES256'] })
    expect(payload).toMatchObject({ sub: 'ann', exp: (payload.iat ?? 0) + 60 })
    expect(await tokenOf('ann')).toBe(token)
    const { payload: other } = await jwtVerify(await tokenOf('bob'), publicKey)
    expect(other.sub).toBe('bob')
  },
})
