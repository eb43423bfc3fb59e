import { definePlugin } from '@proxy/plugin'
import networks from './networks.csv'
import { countryOf, parseAddress, parseRanges } from './ranges.ts'

export default definePlugin<{ denied: string[] }>({
  configSchema: { type: 'object', properties: { denied: { type: 'array', items: { type: 'string' } } }, required: ['denied'] },
  setup: ({ config, metrics }) => {
    const ranges = parseRanges(networks)
    const denied = new Set(config.denied)
    return {
      async request(c, next) {
        const country = countryOf(ranges, parseAddress(c.req.header('x-client-address') ?? '0.0.0.0')) ?? 'unknown'
        if (denied.has(country)) {
          metrics.count('denied', { detail: country })
          return c.json({ error: 'not available in your country' }, 451)
        }
        c.req.raw.headers.set('x-country', country)
        return next()
      },
    }
  },
})
