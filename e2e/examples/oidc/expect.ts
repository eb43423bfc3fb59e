import { expect } from '@jest/globals'
import { send } from '../../harness/client.ts'
import { expectations } from '../../harness/example/expectations.ts'

/** A browser that follows redirects, sends forms, and keeps cookies of each origin. */
function openBrowser(app: string) {
  const jars = new Map<string, Map<string, string>>()
  const load = async (url: URL, fields?: Record<string, string>): Promise<{ url: URL; status: number; text: string }> => {
    const jar = jars.get(url.origin) ?? new Map<string, string>()
    jars.set(url.origin, jar)
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
    const form = fields && { method: 'POST', body: new URLSearchParams(fields).toString(), type: { 'content-type': 'application/x-www-form-urlencoded' } }
    const response = await send({
      port: Number(url.port),
      host: url.host,
      path: url.pathname + url.search,
      method: form?.method ?? 'GET',
      headers: { accept: 'text/html', 'sec-fetch-mode': 'navigate', 'sec-fetch-site': 'none', ...(cookie !== '' && { cookie }), ...form?.type },
      ...(form && { body: form.body }),
    })
    for (const line of [response.headers['set-cookie'] ?? []].flat()) {
      const [name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line)?.slice(1) ?? []
      if (value === '' || line.includes('Max-Age=0;')) jar.delete(name)
      else jar.set(name, value)
    }
    const { location } = response.headers
    if (typeof location === 'string' && response.status < 400) return load(new URL(location, url))
    return { url, status: response.status, text: response.body }
  }
  return {
    load: (path: string) => load(new URL(path, app)),
    submit: (url: URL, fields: Record<string, string>) => load(url, fields),
    cookies: () => jars.get(app) ?? new Map<string, string>(),
  }
}

export default expectations({
  'a person logs in at a certified provider, is known to the application, and logs out': async (run) => {
    const app = `http://localhost:${run.port(8080)}`
    const browser = openBrowser(app)
    const form = await browser.load('/cart?id=7')
    expect(form.text).toContain('password')
    const consent = await browser.submit(form.url, { prompt: 'login', login: 'ann', password: 'x' })
    const page = await browser.submit(consent.url, { prompt: 'consent' })
    expect({ url: page.url.href, status: page.status }).toEqual({ url: `${app}/cart?id=7`, status: 200 })
    const received = run.upstream('app').requests.at(-1)
    expect(received).toMatchObject({ path: '/cart?id=7' })
    expect(received?.headers).toMatchObject({ 'x-user': 'ann' })
    expect(received?.headers['cookie']).toBeUndefined()
    const { status } = await run.send(8080, { path: '/oauth2/logout', headers: { 'sec-fetch-site': 'cross-site' } })
    expect(status).toBe(403)
    await browser.load('/oauth2/logout')
    expect([...browser.cookies().keys()].filter((name) => name.includes('session'))).toEqual([])
  },
})
