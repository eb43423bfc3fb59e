/** Fields that say where a message ends or concern one connection: ours to write, else one request could become two. */
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
