import { expect } from '@jest/globals'
import { expectations } from '../../harness/example/expectations.ts'

export default expectations({
  'users keep their variant, and about a tenth of them get variant b': async (run) => {
    const variantOf = async (user: string): Promise<unknown> => {
      const { body } = await run.send(8080, { headers: { 'x-user': user, 'x-variant': 'forged' } })
      return (JSON.parse(body) as { headers: Record<string, string> }).headers['x-variant']
    }
    const users = Array.from({ length: 100 }, (_, index) => `user-${index}`)
    const variants: unknown[] = []
    for (const user of users) variants.push(await variantOf(user))
    const hits = variants.filter((variant) => variant === 'b').length
    expect(hits).toBeGreaterThan(0)
    expect(hits).toBeLessThan(30)
    expect(variants.every((variant) => variant === 'b' || variant === 'a')).toBe(true)
    expect(await variantOf('user-7')).toBe(variants[7])
  },
})
