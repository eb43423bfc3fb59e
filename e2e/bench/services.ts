import { startServices } from '../harness/services.ts'

const { port } = await startServices({ name: 'services' })
console.log(`listening ${port}`)
