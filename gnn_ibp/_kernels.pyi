"""CPU kernels of gnn_ibp; call them through gnn_ibp.ops."""



def set_num_threads(num_threads: int) -> None: ...

def num_threads() -> int: ...
