/** Header fields for message framing and for one connection. Only the gateway sets them, which prevents request smuggling. */
export const framingFields: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])
